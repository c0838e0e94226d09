/** What the demo agent says and does, word for word. */
import { describe, expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import type { HandOver } from '../../../src/demo/hand-over.ts';
import { HELP } from '../../../src/demo/script.ts';
import { Message } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { check } from '../../../src/model/validate.ts';
import { FakeBridge, perform, TIME, workOf } from '../../support/gateway/demo-agent.ts';

describe('what it says and does', () => {
  test('hello is streamed in pieces that make up the message', async () => {
    const { bridge, end } = await perform('hello');
    const deltas = bridge.of('vendor.tollbridge.message_delta');
    expect(deltas.length).toBe(6);
    expect(deltas.map(({ text }) => text).join('')).toBe(bridge.said()[0]);
    expect(deltas[0]).toEqual({ message_id: 'task_1.m1', role: 'assistant', text: 'Hello! I am ' });
    expect(end).toEqual({ state: 'COMPLETED', summary: 'answer' });
    const { message } = bridge.of('agent.message')[0] as { message: JsonObject };
    expect(message.id).toBe('task_1.m1');
    check(Message, { ...message, created_at: TIME, updated_at: TIME }, 'message');
  });

  test('words it does not know are answered with the ones it does', async () => {
    const { bridge, end } = await perform('sing something');
    expect(bridge.said()).toEqual([HELP]);
    expect(end.state).toBe('COMPLETED');
  });

  test('a note is read', async () => {
    const { bridge } = await perform('please read plan');
    expect(bridge.acts).toEqual([
      {
        kind: 'tool',
        tool_call_id: 'task_1.call1',
        tool: 'read_note',
        target: 'plan',
        effect: 'read',
        arguments: { name: 'plan' },
      },
    ]);
    expect(bridge.said()).toEqual(['plan says: First look, then leap.']);
  });

  test('a tool that fails is reported, and the work goes on', async () => {
    const { bridge, end } = await perform('read nothing then hello');
    expect(bridge.said()[0]).toBe('I could not read nothing: there is no note called nothing');
    expect(bridge.said()).toHaveLength(2);
    expect(end.state).toBe('COMPLETED');
  });

  test('a refusal is reported with its reason, and the work goes on', async () => {
    const bridge = new FakeBridge();
    bridge.refusals.set('send_mail', 'Ana said no');
    const { end } = await perform('send report to ana then read plan', bridge);
    expect(bridge.said()).toEqual([
      'I was not allowed to send mail to ana: Ana said no',
      'plan says: First look, then leap.',
    ]);
    expect(bridge.tools.outbox).toEqual([]);
    expect(end).toEqual({ state: 'COMPLETED', summary: 'send mail to ana (not allowed), then read plan' });
  });

  test('several steps have a plan, reported whole each time it changes', async () => {
    const { bridge } = await perform('read plan then write plan Look twice');
    expect(bridge.of('vendor.tollbridge.plan')).toEqual([
      { entries: [entry('read plan', 'in_progress'), entry('write plan', 'pending')] },
      { entries: [entry('read plan', 'completed'), entry('write plan', 'in_progress')] },
      { entries: [entry('read plan', 'completed'), entry('write plan', 'completed')] },
    ]);
    expect(bridge.tools.notes.get('plan')).toBe('Look twice');
  });

  test('each step is one model call, with its usage', async () => {
    const { bridge } = await perform('read plan then hello');
    expect(bridge.of('span.completed').map(({ span, model }) => ({ span, model }))).toEqual([
      {
        span: { id: 'task_1.span1', kind: 'llm', call_id: 'task_1.llm1' },
        model: { provider: 'demo', model: 'script' },
      },
      {
        span: { id: 'task_1.span2', kind: 'llm', call_id: 'task_1.llm2' },
        model: { provider: 'demo', model: 'script' },
      },
    ]);
    expect(bridge.of('vendor.tollbridge.usage')[0]).toEqual({
      provider: 'demo',
      model: 'script',
      call_id: 'task_1.llm1',
      input_tokens: 4,
      output_tokens: 2,
      usd_micros: 0,
    });
  });

  test('an artifact is a file and a patch, and the message points at both', async () => {
    const { bridge } = await perform('artifact');
    expect(bridge.files.map(({ kind, name, mime_type }) => ({ kind, name, mime_type }))).toEqual([
      { kind: 'file', name: 'report.md', mime_type: 'text/markdown' },
      { kind: 'patch', name: 'report.patch', mime_type: 'text/x-diff' },
    ]);
    const { message } = bridge.of('agent.message')[0] as unknown as { message: { parts: JsonObject[] } };
    expect(message.parts.slice(1)).toEqual([
      { type: 'artifact_ref', artifact_id: 'artifact_1', visibility: 'public' },
      { type: 'artifact_ref', artifact_id: 'artifact_2', visibility: 'public' },
    ]);
  });

  test('a question is asked under a name that stays, and its answer used', async () => {
    const { bridge } = await perform('ask what colour?');
    expect(bridge.questions).toEqual([{ kind: 'input', key: 'task_1.ask1', question: 'what colour?' }]);
    expect(bridge.said()).toEqual(['You said: blue']);
  });

  test('no answer is reported, and the work goes on', async () => {
    const bridge = new FakeBridge();
    bridge.answer = { kind: 'expired', reason: 'nobody answered in time' };
    const { end } = await perform('ask then hello', bridge);
    expect(bridge.said()[0]).toBe('I got no answer: nobody answered in time');
    expect(end.state).toBe('COMPLETED');
  });

  test('a handoff is decided, reported and comes back', async () => {
    const { bridge } = await perform('handoff to bea');
    expect(bridge.acts[0]).toMatchObject({ kind: 'handoff', target: 'bea', effect: 'execute' });
    expect(bridge.of('agent.handoff')).toEqual([
      { target_agent: 'bea', task_id: 'task_1.handoff1', status: 'accepted' },
      { target_agent: 'bea', task_id: 'task_1.handoff1', status: 'completed' },
    ]);
    const refusing = new FakeBridge();
    refusing.refusals.set('handoff', 'not to bea');
    await perform('handoff to bea', refusing);
    expect(refusing.of('agent.handoff')).toEqual([
      { target_agent: 'bea', task_id: 'task_1.handoff1', status: 'rejected' },
    ]);
    expect(refusing.said()).toEqual(['I was not allowed to hand off to bea: not to bea']);
  });

  test('work that is handed over comes back with its own task and receipt', async () => {
    const bridge = new FakeBridge();
    const input: string[] = [];
    const handOver =
      (state: string): HandOver =>
      async (to, work, from, accepted) => {
        input.push(`${from.id} gives "${work}" to ${to}`);
        await accepted('task_2');
        return { task_id: 'task_2', receipt_id: 'receipt_2', state, text: 'plan is read.' };
      };
    const start = async (state: string) => {
      const agent = createDemoAgent({ pause: async () => {}, handOver: handOver(state) });
      const work = workOf({ text: 'handoff to bea: read plan' });
      return await (await agent.start(work, bridge, new AbortController().signal)).done;
    };
    expect((await start('COMPLETED')).state).toBe('COMPLETED');
    expect((await start('FAILED')).state).toBe('COMPLETED');
    expect(input[0]).toBe('task_1 gives "read plan" to bea');
    expect(bridge.of('agent.handoff')).toEqual([
      { target_agent: 'bea', task_id: 'task_2', status: 'accepted' },
      { target_agent: 'bea', task_id: 'task_2', receipt_id: 'receipt_2', status: 'completed' },
      { target_agent: 'bea', task_id: 'task_2', status: 'accepted' },
      { target_agent: 'bea', task_id: 'task_2', receipt_id: 'receipt_2', status: 'failed' },
    ]);
    expect(bridge.said()).toEqual(['bea says: plan is read.', 'The handoff to bea failed: it ended as FAILED']);
  });

  test('work that came from another task names it', async () => {
    const bridge = new FakeBridge();
    const { task, ...rest } = workOf({ text: 'hello' });
    const work = { ...rest, task: { ...task, metadata: { handoff: { task_id: 'task_0' } } } };
    const agent = createDemoAgent({ pause: async () => {}, name: 'bea' });
    await (await agent.start(work, bridge, new AbortController().signal)).done;
    expect(bridge.of('agent.handoff')).toEqual([
      { target_agent: 'bea', task_id: 'task_0', status: 'accepted' },
      { target_agent: 'bea', task_id: 'task_0', status: 'completed' },
    ]);
  });

  test('it fails when asked to, with the code it was given, and does nothing after', async () => {
    const { bridge, end } = await perform('fail with out_of_paper then send report to ana');
    expect(end).toEqual({
      state: 'FAILED',
      failure: { code: 'out_of_paper', message: 'the demo agent was asked to fail' },
    });
    expect(bridge.acts).toEqual([]);
  });

  test('a bridge that breaks is not mistaken for being stopped', async () => {
    const bridge = new FakeBridge();
    bridge.onEmit = () => {
      throw new Error('the log is gone');
    };
    await expect(perform('hello', bridge)).rejects.toThrow('the log is gone');
  });

  function entry(content: string, status: string) {
    return { content, status };
  }
});
