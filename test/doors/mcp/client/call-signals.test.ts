/** Each call has a signal of its own: what stops one call stops no other. */
import { expect, test } from 'vitest';
import type { Frame, FrameOutcome } from '../../../../adapters/mcp/frames.ts';
import type { Caller } from '../../../../adapters/mcp/server/caller.ts';
import { createLegacyClientSession } from '../../../../adapters/mcp/server/transports/legacy-session.ts';

/** A session, and the client that makes its calls: each is answered when it is asked to be. */
function session() {
  const calls: { caller: Caller; answer(outcome: FrameOutcome): void }[] = [];
  const handler = {
    receive: (_: unknown, caller: Caller) =>
      new Promise<FrameOutcome>((answer) => {
        calls.push({ caller, answer });
      }),
    notify: async () => {},
    async refuse() {},
    close() {},
  };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const actor = { id: 'someone', kind: 'person', scopes: ['*'] } as const;
  const opened = createLegacyClientSession({ id: 's', actor, handler, standalone: { send() {} }, log: log as never });
  const receive = (frame: object) => opened.receive({ jsonrpc: '2.0', ...frame } as Frame, { send() {} });
  return { calls, receive, call: (id: number) => receive({ id, method: 'tools/call', params: { name: 'x' } }) };
}
const DONE: FrameOutcome = { result: { content: [] } };

test('a call that is taken back takes no other with it', async () => {
  const { calls, receive, call } = session();
  const first = call(1);
  calls[0]!.answer(DONE);
  expect(await first).toBe(DONE);

  const [second, third] = [call(2), call(3)];
  await receive({ method: 'notifications/cancelled', params: { requestId: 2 } });
  // Too late: that call was answered.
  await receive({ method: 'notifications/cancelled', params: { requestId: 1 } });
  expect(calls.map(({ caller }) => caller.signal.aborted)).toEqual([false, true, false]);
  calls[1]!.answer(DONE);
  calls[2]!.answer(DONE);
  expect([await second, await third]).toEqual([undefined, DONE]);

  const fourth = call(4);
  expect(calls[3]!.caller.signal.aborted).toBe(false);
  calls[3]!.answer(DONE);
  expect(await fourth).toBe(DONE);
});

test('what goes on after its answer keeps its signal', async () => {
  const { calls, receive, call } = session();
  const task = call(1);
  calls[0]!.answer({ result: { task: { taskId: 't', status: 'working' } } });
  await task;
  const list = receive({ id: 2, method: 'tools/list' });
  calls[1]!.answer({ result: { tools: [] } });
  await list;
  void call(3);
  const [first, second, third] = calls.map(({ caller }) => caller.signal);
  expect(third).not.toBe(first);
  expect(third).not.toBe(second);
});
