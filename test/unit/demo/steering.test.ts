/** The demo agent stopped, steered, started again, and how it reads what it is asked to do. */
import { describe, expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { HELP, readScript, textOf } from '../../../src/demo/script.ts';
import { FakeBridge, perform, workOf } from '../../support/gateway/demo-agent.ts';

describe('stopping and steering', () => {
  test('long work takes as many steps as it was asked for', async () => {
    const { bridge, end } = await perform('wait 5');
    expect(bridge.of('vendor.tollbridge.message_delta')).toHaveLength(5);
    expect(bridge.said()).toEqual(['step 1 of 5\nstep 2 of 5\nstep 3 of 5\nstep 4 of 5\nstep 5 of 5\n']);
    expect(end.state).toBe('COMPLETED');
  });

  test.each(['resolves', 'rejects'])('it stops within the step, when the pause %s on abort', async (how) => {
    const stop = new AbortController();
    const bridge = new FakeBridge();
    let pauses = 0;
    const agent = createDemoAgent({
      pause: async (_ms, signal) => {
        pauses += 1;
        if (pauses === 3) stop.abort();
        if (how === 'rejects') signal.throwIfAborted();
      },
    });
    const run = await agent.start(workOf({ text: 'wait 1000 then send x to ana' }), bridge, stop.signal);
    expect(await run.done).toEqual({ state: 'CANCELED', summary: 'stopped after 0 of 2 steps' });
    expect(bridge.of('vendor.tollbridge.message_delta')).toHaveLength(2);
    expect(bridge.acts).toEqual([]);
  });

  test('a write refused after the stop is the echo of the stop', async () => {
    const bridge = new FakeBridge();
    const stop = new AbortController();
    bridge.onEmit = ({ event }) => {
      if (event !== 'agent.message') return;
      stop.abort();
      throw new Error('the task has ended');
    };
    const agent = createDemoAgent({ pause: async () => {} });
    const run = await agent.start(workOf({ text: 'hello' }), bridge, stop.signal);
    expect((await run.done).state).toBe('CANCELED');
  });

  test('a message while it works is noted, and "stop" ends long work early as done', async () => {
    const bridge = new FakeBridge();
    const { end } = await perform('wait 100 then hello', bridge, (run) => {
      bridge.onEmit = ({ payload }) => {
        if (payload.text === 'step 2 of 100\n') run.steer?.({ parts: [{ type: 'text', text: 'please stop' }] });
      };
    });
    expect(bridge.said().slice(0, 2)).toEqual(['step 1 of 100\nstep 2 of 100\n', 'Noted: please stop']);
    expect(end.state).toBe('COMPLETED');
  });
});

describe('starting again', () => {
  test('the same words give the same facts, calls and questions, name for name', async () => {
    const text = 'read plan then write log Done then ask who then artifact then send it to ana then handoff to bea';
    const first = await perform(text);
    const second = await perform(text);
    expect(second.bridge.facts).toEqual(first.bridge.facts);
    expect(second.bridge.acts).toEqual(first.bridge.acts);
    expect(second.bridge.questions).toEqual(first.bridge.questions);
    const ids = first.bridge.acts.map(({ tool_call_id }) => tool_call_id);
    expect(ids).toEqual(['task_1.call1', 'task_1.call2', 'task_1.call5', 'task_1.call6']);
  });
});

describe('reading a script', () => {
  test('the first verb of a clause is the one that is meant', () => {
    expect(readScript('send hello to ana')).toEqual([
      {
        do: 'call',
        tool: 'send_mail',
        effect: 'send',
        target: 'ana',
        arguments: { to: 'ana', text: 'hello' },
        intent: 'send mail to ana',
      },
    ]);
  });

  test('the words are found in any shape of input', () => {
    expect(textOf({ text: 'a' })).toBe('a');
    expect(textOf({ prompt: 'b' })).toBe('b');
    expect(
      textOf({
        message: {
          role: 'user',
          parts: [
            { type: 'text', text: 'c' },
            { type: 'json', value: 1 },
          ],
        },
      }),
    ).toBe('c ');
    expect(textOf({ anything: 1 })).toBe('');
  });

  test('a book is not read to its end, however it is written', () => {
    expect(readScript('then '.repeat(300_000))).toEqual([{ do: 'say', text: HELP }]);
    expect(readScript('hello then '.repeat(100_000))).toHaveLength(50);
    expect(readScript(`send${' '.repeat(1_000_000)}to`)).toHaveLength(1);
  });
});
