/** ACP over WebSocket against the built process: a second key at the same door, and another's session. */
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type Serving, serving } from '../../support/process/served.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely
type Frame = any;

interface Editor {
  ask(method: string, params: object): Promise<Frame>;
  tell(frame: object): void;
  /** Everything that came without being an answer. */
  readonly received: readonly Frame[];
  close(): void;
}

async function editor(gateway: Serving, key: string): Promise<Editor> {
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/acp`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const received: Frame[] = [];
  const waiting = new Map<number, (frame: Frame) => void>();
  let count = 0;
  socket.on('message', (data) => {
    const frame: Frame = JSON.parse(String(data));
    const answered = frame.method === undefined ? waiting.get(frame.id) : undefined;
    if (answered) answered(frame);
    else received.push(frame);
  });
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const made: Editor = {
    received,
    tell: (frame) => socket.send(JSON.stringify({ jsonrpc: '2.0', ...frame })),
    ask(method, params) {
      const id = ++count;
      const answer = new Promise<Frame>((resolve) => waiting.set(id, resolve));
      made.tell({ id, method, params });
      return answer;
    },
    close: () => socket.terminate(),
  };
  const opened = await made.ask('initialize', { protocolVersion: 1, clientCapabilities: {} });
  expect(opened.result.protocolVersion).toBe(1);
  return made;
}

const prompt = (sessionId: string, text: string) => ({ sessionId, prompt: [{ type: 'text', text }] });

describe("another key's session over ACP", { timeout: 60_000 }, () => {
  test('is not there: not to see, load, resume, prompt, cancel, close, switch or answer', async () => {
    const gateway = await serving({
      config: 'default_agent: demo\n',
      rules: '\n  - { id: mail, when: { tool: send_mail }, then: ask }\n',
    });
    const [anaKey, eveKey] = [await gateway.key('ana', '--for', 'editor'), await gateway.key('eve', '--for', 'editor')];
    const [ana, eve] = [await editor(gateway, anaKey), await editor(gateway, eveKey)];
    const { result } = await ana.ask('session/new', { cwd: '/tmp', mcpServers: [] });
    const { sessionId } = result;
    const atWork = ana.ask('session/prompt', prompt(sessionId, 'please send a mail to bob'));
    await expect
      .poll(() => ana.received.some(({ method }) => method === 'session/request_permission'), { timeout: 15_000 })
      .toBe(true);
    const asked = ana.received.find(({ method }) => method === 'session/request_permission');

    const tries: readonly [string, object][] = [
      ['session/load', { sessionId, cwd: '/tmp', mcpServers: [] }],
      ['session/resume', { sessionId, cwd: '/tmp', mcpServers: [] }],
      ['session/prompt', prompt(sessionId, 'tell me everything')],
      ['session/set_mode', { sessionId, modeId: 'default' }],
      ['session/fork', { sessionId, cwd: '/tmp' }],
      ['session/close', { sessionId }],
    ];
    for (const [method, params] of tries) {
      const theirs = await eve.ask(method, params);
      const absent = await eve.ask(method, { ...params, sessionId: 'session_that_never_was' });
      expect(theirs.error, method).toBeDefined();
      expect([method, theirs.error.code]).toEqual([method, absent.error?.code]);
      expect(JSON.stringify(theirs)).not.toContain('bob');
    }
    // Deleting what is not there is what was wanted: the answer is the same, and nothing is deleted.
    expect((await eve.ask('session/delete', { sessionId })).result).toEqual({});
    expect(JSON.stringify(await ana.ask('session/list', {}))).toContain(sessionId);
    eve.tell({ method: 'session/cancel', params: { sessionId } });
    // The id of another connection's question, answered here with every yes it could take.
    for (const optionId of asked.params.options.map(({ optionId: id }: Frame) => id))
      eve.tell({ id: asked.id, result: { outcome: { outcome: 'selected', optionId } } });
    const listed = await eve.ask('session/list', {});
    expect(JSON.stringify(listed)).not.toContain(sessionId);
    expect(eve.received).toEqual([]);

    const events = await gateway.events('vendor.tollbridge.ask_closed', 'task.canceled');
    expect(events).toEqual([]);
    const no = asked.params.options.find(({ kind }: Frame) => kind === 'reject_once');
    ana.tell({ id: asked.id, result: { outcome: { outcome: 'selected', optionId: no.optionId } } });
    expect((await atWork).result.stopReason).toBe('end_turn');
    ana.close();
    eve.close();
  });
});
