/**
 * Sessions opened and dropped in the middle of their work, uncleanly and in turns: the editor vanishes, the agent is killed,
 * the agent stalls and the editor vanishes, the agent falls silent and its turn is ended, we are killed. Afterwards nobody may be left, every task must have ended, and
 * the receipts must verify. `npm run drops -- 200` does it two hundred times.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Task } from '../../../src/model/resources.ts';
import { isTerminal } from '../../../src/model/words.ts';
import type { Row } from '../../../src/ports/index.ts';
import { verifyChain } from '../../../src/receipt/verify/chain.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { eventuallyNone, type Manner, type Running, startRelay } from '../../support/acp/process.ts';
import type { Wire } from '../../support/wire/line-end.ts';

export interface DropsReport {
  readonly sessions: number;
  /** Processes that outlived their session. */
  readonly left: readonly number[];
  readonly tasks: number;
  readonly open: readonly string[];
  readonly chain: { readonly valid: boolean; readonly records: number };
}

export interface DropsOptions {
  readonly dir: string;
  readonly count: number;
  readonly atOnce: number;
  tell(line: string): void;
}

type Drop = (running: Running, agentPid: number, done: Promise<Wire>) => void | Promise<void>;

const DROPS: readonly (readonly [string, Drop])[] = [
  ['the editor vanishes', (running) => running.drop()],
  ['the agent is killed', (_, agentPid) => process.kill(agentPid, 'SIGKILL')],
  [
    'the agent stalls and the editor vanishes',
    (running, agentPid) => {
      process.kill(agentPid, 'SIGSTOP');
      running.drop();
    },
  ],
  [
    'the agent falls silent and its turn is ended',
    async ({ editor }, agentPid, done) => {
      process.kill(agentPid, 'SIGSTOP');
      // Until then it waits for a person, which is no silence.
      const { id } = await editor.received(({ method }) => method === 'session/request_permission');
      editor.say({ id, result: { outcome: { outcome: 'cancelled' } } });
      const { error } = await done;
      if (!String(error?.message).includes('has not said a word')) throw new Error('a stalled turn was not ended');
      editor.close();
    },
  ],
  ['we are killed', ({ relay }) => void relay.kill('SIGKILL')],
];
const MANNERS: readonly Manner[] = ['polite', 'deaf', 'leaves'];

export async function drops({ dir, count, atOnce, tell }: DropsOptions): Promise<DropsReport> {
  let next = 0;
  const one = async () => {
    for (let at = next++; at < count; at = next++) {
      const manner = MANNERS[at % MANNERS.length] as Manner;
      const running = startRelay({ dir, manner, mark: dir, args: ['--stall', '1s'] });
      const { agentPid, done } = await running.work();
      const [what, drop] = DROPS[at % DROPS.length] as (typeof DROPS)[number];
      await drop(running, agentPid, done);
      await running.exited;
      tell(`${at + 1}: ${what}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  const left = await eventuallyNone(dir);
  return { sessions: count, left, ...(await looked(dir)) };
}

/** The next one to open the gateway brings to its end what was left open; then the log is read. */
async function looked(dir: string): Promise<Pick<DropsReport, 'tasks' | 'open' | 'chain'>> {
  const runtime = await openCoreRuntime({ dataDir: dir });
  try {
    await runtime.start();
    const tasks: (Task & Row)[] = [];
    for (let after: string | undefined; ; after = tasks.at(-1)?.id) {
      const page = await runtime.store.list<Task & Row>({ object: 'task', limit: 200, ...(after && { after }) });
      tasks.push(...page);
      if (page.length < 200) break;
    }
    const stored: string[] = [];
    for (let after = -1; ; ) {
      const page = await runtime.store.receipts({ limit: 200, ...(after >= 0 && { after }) });
      stored.push(...page.map(({ receipt }) => JSON.stringify(receipt)));
      if (page.length < 200) break;
      after = page.at(-1)?.position ?? after;
    }
    const { valid, records } = await verifyChain(stored, { keys: runtime.keyring.jwks() as never });
    const open = tasks.filter(({ status }) => !isTerminal(status)).map(({ id }) => id);
    return { tasks: tasks.length, open, chain: { valid, records } };
  } finally {
    await runtime.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-'));
  const count = Number(process.argv[2] ?? 200);
  const began = Date.now();
  const tell = (line: string) => process.stderr.write(`${line}\n`);
  const report = await drops({ dir, count, atOnce: 4, tell });
  process.stdout.write(`${JSON.stringify({ ...report, seconds: Math.round((Date.now() - began) / 1000) })}\n`);
  await rm(dir, { recursive: true, force: true });
  const sound = report.left.length === 0 && report.open.length === 0 && report.chain.valid;
  process.exitCode = sound && report.tasks === count ? 0 : 1;
}
