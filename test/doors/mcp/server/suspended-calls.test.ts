/** Calls kept between two requests of the modern era: what is reported meanwhile is received by the request that resumes the call. */
import { expect, test } from 'vitest';
import type { FrameOutcome, Notice } from '../../../../adapters/mcp/frames.ts';
import {
  createSuspendedCalls,
  type Running,
  type SuspendedRequest,
} from '../../../../adapters/mcp/server/suspended-calls.ts';

const NEVER = new AbortController().signal;
const progress = (progressToken: string, done: number): Notice => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: done },
});

test('progress goes by the name of the request that is there now, and what was reported in between is not lost', async () => {
  const suspended = createSuspendedCalls(1000);
  const received: [string, Notice][] = [];
  const asking = (name: string, more: object = {}): SuspendedRequest => ({
    who: 'ana',
    method: 'tools/call',
    params: { name: 'slow', arguments: {}, _meta: { progressToken: name }, ...more },
    signal: NEVER,
    notify: (notice) => received.push([name, notice]),
  });
  let running: Running | undefined;
  let finish: (outcome: FrameOutcome) => void = () => {};
  const first = suspended.start(asking('first'), async (input) => {
    running = input;
    input.notify(progress('first', 1));
    await input.input({ colour: { method: 'elicitation/create', params: { message: 'Which?' } } });
    input.notify(progress('first', 3));
    return await new Promise((resolve) => {
      finish = resolve;
    });
  });
  const { result } = (await first) as { result: { requestState: string } };
  running?.notify(progress('first', 2));
  const back = { requestState: result.requestState, inputResponses: { colour: { action: 'accept' } } };
  const second = suspended.resume(asking('second', back));
  await new Promise((resolve) => setImmediate(resolve));
  finish({ result: { content: [] } });
  expect(await second).toEqual({ result: { content: [] } });
  expect(received).toEqual([
    ['first', progress('first', 1)],
    ['second', progress('second', 2)],
    ['second', progress('second', 3)],
  ]);
  suspended.close();
});

test('a resuming request without a progress token receives no progress', async () => {
  const suspended = createSuspendedCalls(1000);
  const received: Notice[] = [];
  const asking = (params: SuspendedRequest['params']): SuspendedRequest => ({
    who: 'ana',
    method: 'tools/call',
    params: { name: 'slow', ...params },
    signal: NEVER,
    notify: (notice) => received.push(notice),
  });
  const first = suspended.start(asking({ _meta: { progressToken: 1 } }), async (input) => {
    await input.input({ colour: { method: 'elicitation/create', params: { message: 'Which?' } } });
    input.notify(progress('1', 1));
    return { result: {} };
  });
  const { result } = (await first) as { result: { requestState: string } };
  await suspended.resume(
    asking({ requestState: result.requestState, inputResponses: { colour: { action: 'accept' } } }),
  );
  expect(received).toEqual([]);
  suspended.close();
});
