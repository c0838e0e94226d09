/**
 * Sessions that end badly, many at once: clients cut off, agents killed, agents that hang or leave children behind. In the
 * end nothing runs, every task has ended, and the chain of receipts is whole. `ACP_DROPS` says how many.
 */
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { settingsOf } from '../../../adapters/acp/config.ts';
import { acpDoor } from '../../../adapters/acp/server/door.ts';
import type { Task } from '../../../src/model/resources.ts';
import { isTerminal } from '../../../src/model/words.ts';
import type { Row } from '../../../src/ports/index.ts';
import { verifyReceipt } from '../../../src/receipt/verify/verify.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { openAgentGateway } from '../../support/acp/agent-gateway.ts';
import { speak } from '../../support/acp/client.ts';
import { ana } from '../../support/gateway/actors.ts';

const COUNT = Number(process.env.ACP_DROPS ?? 8);
const AT_ONCE = 6;

const WAYS = ['the client is cut off', 'the agent is killed', 'the agent hangs', 'the agent exits'] as const;

test(`${COUNT} sessions dropped in every way leave nothing behind`, { timeout: 60_000 + COUNT * 3_000 }, async () => {
  const at = await openAgentGateway({
    agent: { ignoreEnd: true, ignoreTerm: true },
    config: { timeouts: { stall_ms: 1_500, cancel_ms: 500, grace_ms: 100, start_ms: 60_000 } },
    settings: { graceMs: 20_000 },
  });
  let count = 0;
  const log = { info() {}, warn() {}, error() {} };
  const http = createHttpHost({ requestId: () => `req_${++count}`, log, graceMs: 200 });
  const door = await acpDoor(settingsOf({ on_disconnect: 'cancel' }), {
    log,
    http,
    clock: at.t.clock,
    ids: { next: (prefix) => `${prefix}_d${++count}` },
    authenticate: async () => ana,
    jwks: () => at.t.runtime.keyring.jwks(),
    secret: async () => '',
  }).open(at.t.bridge);
  const { url } = await http.listen();
  onTestFinished(async () => {
    await door.close();
    await http.close();
  });

  async function drop(n: number): Promise<void> {
    const way = WAYS[n % WAYS.length];
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/acp`, { headers: { authorization: 'Bearer any' } });
    onTestFinished(() => socket.terminate());
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    const editor = await speak({
      send: (text) => socket.send(text),
      onText: (hear) => void socket.on('message', (data) => hear(String(data))),
      close: async () => socket.terminate(),
    });
    const sessionId = await editor.session(at.dir);
    const last = {
      'the client is cut off': { untilCanceled: true },
      'the agent is killed': { kill: 'SIGKILL' },
      'the agent hangs': { hang: true },
      'the agent exits': { exit: 1 },
    }[way!];
    const steps = [{ spawn: n % 2 ? 'detached' : 'here' }, { say: 'begun' }, last];
    const done = editor.prompt(sessionId, JSON.stringify(steps)).catch(() => undefined);
    await editor.next(
      ({ params, result, error }) => params?.update?.content?.text === 'begun' || result?.stopReason || error,
    );
    if (way === 'the client is cut off') socket.terminate();
    else await done;
    await at.t.send('session.close', { session_id: sessionId });
  }

  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < COUNT) await drop(next++);
    }),
  );
  await at.backend.close?.();

  expect(at.notes('pid').length).toBeGreaterThanOrEqual(2 * COUNT);
  expect(at.alive()).toEqual([]);
  const tasks: (Task & Row)[] = [];
  for (let after: string | undefined; ; after = tasks.at(-1)?.id) {
    const page = await at.t.runtime.store.list<Task & Row>({ object: 'task', limit: 200, ...(after && { after }) });
    tasks.push(...page);
    if (page.length < 200) break;
  }
  expect(tasks).toHaveLength(COUNT);
  expect(tasks.filter(({ status }) => !isTerminal(status))).toEqual([]);
  const chain = await at.t.runtime.store.receipts({ chain: at.room.workspace, limit: COUNT + 1 });
  expect(chain).toHaveLength(COUNT);
  const keys = at.t.runtime.keyring.jwks();
  const verdicts = chain.map(({ receipt }, n) =>
    verifyReceipt(receipt, { keys, previous: chain[n - 1]?.receipt ?? null }),
  );
  expect(verdicts.filter(({ valid }) => !valid)).toEqual([]);
});
