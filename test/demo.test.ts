import { describe, expect, test } from 'vitest';
import { createDemoAgent } from '../src/demo/agent.ts';
import type { HandOver } from '../src/demo/hand-over.ts';
import { HELP, readScript, textOf } from '../src/demo/script.ts';
import { createDemoTools, type DemoTools } from '../src/demo/tools.ts';
import type { Action, NewArtifact } from '../src/model/actions.ts';
import type { Answer } from '../src/model/asks.ts';
import type { End, Fact, ProposedAction } from '../src/model/commands.ts';
import { Message, Skill, type Task } from '../src/model/resources.ts';
import type { JsonObject } from '../src/model/schema.ts';
import { check } from '../src/model/validate.ts';
import type { ActResult, Question, Run, Sink, Work } from '../src/ports.ts';

const TIME = '2026-02-03T04:05:06.000Z';

function workOf(input: JsonObject): Work {
  const envelope = { created_at: TIME, updated_at: TIME, metadata: {} };
  return {
    task: {
      ...envelope,
      id: 'task_1',
      object: 'task',
      session_id: 'session_1',
      workspace_id: 'workspace_1',
      status: 'WORKING',
      input,
      created_by: 'ana',
    } satisfies Task,
    session: {
      ...envelope,
      id: 'session_1',
      object: 'session',
      workspace_id: 'workspace_1',
      state: 'ACTIVE',
      transcript: {},
    },
    resumed: false,
    async *transcript() {},
  };
}

/** A bridge that allows everything but what it is told to refuse, and remembers what it was told. */
class FakeBridge implements Sink {
  readonly facts: Fact[] = [];
  readonly acts: ProposedAction[] = [];
  readonly questions: Question[] = [];
  readonly files: NewArtifact[] = [];
  readonly tools: DemoTools = createDemoTools();
  readonly refusals = new Map<string, string>();
  answer: Answer = { kind: 'value', by: 'ana', value: 'blue' };
  onEmit: (fact: Fact) => void = () => {};

  async emit(fact: Fact): Promise<void> {
    this.facts.push(fact);
    this.onEmit(fact);
  }
  async ask(question: Question): Promise<Answer> {
    this.questions.push(question);
    return this.answer;
  }
  async act(...[proposed, effect]: Parameters<Sink['act']>): Promise<ActResult> {
    this.acts.push(proposed);
    const reason = this.refusals.get(proposed.tool ?? '');
    if (reason) return { kind: 'refused', reason, decision: { verdict: 'block', reason, engine: 'test' } };
    const never = new AbortController().signal;
    const result = effect
      ? await effect(proposed.arguments ?? {}, never)
      : await this.tools.call(actionOf(proposed), never);
    return { kind: 'done', result };
  }
  async artifact(file: NewArtifact): Promise<{ id: string; sha256: string | null }> {
    this.files.push(file);
    return { id: `artifact_${this.files.length}`, sha256: null };
  }

  said(): string[] {
    return this.facts
      .filter(({ event }) => event === 'agent.message')
      .map(({ payload }) => (payload as { message: { parts: { text: string }[] } }).message.parts[0]?.text ?? '');
  }
  of(event: string): JsonObject[] {
    return this.facts.filter((fact) => fact.event === event).map(({ payload }) => payload);
  }
}

function actionOf(proposed: ProposedAction): Action {
  return {
    id: 'action_1',
    actor: { id: 'agent:demo', kind: 'agent', scopes: [] },
    workspace_id: 'workspace_1',
    arguments: {},
    effect: 'unknown',
    evidence: 'held',
    ...proposed,
  };
}

async function perform(
  text: string,
  bridge = new FakeBridge(),
  during: (run: Run, stop: AbortController) => void = () => {},
): Promise<{ bridge: FakeBridge; end: End }> {
  const stop = new AbortController();
  const agent = createDemoAgent({ pause: async () => {} });
  const run = await agent.start(workOf({ role: 'user', parts: [{ type: 'text', text }] }), bridge, stop.signal);
  during(run, stop);
  return { bridge, end: await run.done };
}

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

  test('a tool that fails is told, and the work goes on', async () => {
    const { bridge, end } = await perform('read nothing then hello');
    expect(bridge.said()[0]).toBe('I could not read nothing: there is no note called nothing');
    expect(bridge.said()).toHaveLength(2);
    expect(end.state).toBe('COMPLETED');
  });

  test('a refusal is told with its reason, and the work goes on', async () => {
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

  test('several steps have a plan, told whole each time it changes', async () => {
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

  test('no answer is told, and the work goes on', async () => {
    const bridge = new FakeBridge();
    bridge.answer = { kind: 'expired', reason: 'nobody answered in time' };
    const { end } = await perform('ask then hello', bridge);
    expect(bridge.said()[0]).toBe('I got no answer: nobody answered in time');
    expect(end.state).toBe('COMPLETED');
  });

  test('a handoff is decided, told and comes back', async () => {
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
    const given: string[] = [];
    const handOver =
      (state: string): HandOver =>
      async (to, work, from, accepted) => {
        given.push(`${from.id} gives "${work}" to ${to}`);
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
    expect(given[0]).toBe('task_1 gives "read plan" to bea');
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

describe('stopping and steering', () => {
  test('long work takes as many steps as it was told', async () => {
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

describe('tools', () => {
  const never = new AbortController().signal;

  test('every definition is a skill, and says what it does to the world', async () => {
    const tools = createDemoTools();
    const skills = await tools.list();
    expect(skills.map(({ name, requires_approval }) => [name, tools.effect?.(name), requires_approval])).toEqual([
      ['read_note', 'read', false],
      ['write_note', 'write', false],
      ['delete_note', 'delete', true],
      ['send_mail', 'send', true],
    ]);
    for (const skill of skills) check(Skill, skill, skill.name);
    expect(await tools.list()).toBe(skills);
    expect(tools.effect?.('constructor')).toBeUndefined();
  });

  test('a change says what it changed, by hash', async () => {
    const tools = createDemoTools({ notes: { a: 'one' } });
    const written = await tools.call(
      actionOf({ kind: 'tool', tool: 'write_note', arguments: { name: 'a', text: 'two' } }),
      never,
    );
    expect(written).toEqual({
      status: 'ok',
      output: { text: 'a is written.' },
      effects: [
        {
          type: 'fs_write',
          path: 'notes/a',
          operation: 'modify',
          before_sha256: 'sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed',
          after_sha256: 'sha256:3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3',
        },
      ],
    });
    const deleted = await tools.call(actionOf({ kind: 'tool', tool: 'delete_note', arguments: { name: 'a' } }), never);
    expect(deleted.effects).toEqual([
      {
        type: 'fs_write',
        path: 'notes/a',
        operation: 'delete',
        before_sha256: 'sha256:3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3',
        after_sha256: null,
      },
    ]);
  });

  test('the journal has one line per effect and none for what did nothing', async () => {
    const lines: string[] = [];
    const tools = createDemoTools({ notes: { a: 'one' }, journal: (line) => void lines.push(line) });
    const act = (tool: string, args: JsonObject, signal = never) =>
      tools.call(actionOf({ kind: 'tool', tool, tool_call_id: `c-${tool}`, arguments: args }), signal);
    await act('read_note', { name: 'a' });
    await act('write_note', { name: 'b', text: 'x' });
    await act('delete_note', { name: 'missing' });
    await act('send_mail', { to: 'ana', text: 'hi' });
    await act('send_mail', { to: 'ana', text: 'hi' }, AbortSignal.abort());
    await act('send_mail', { to: 'ana' });
    expect(lines).toEqual([
      'write_note c-write_note {"name":"b","text":"x"}',
      'send_mail c-send_mail {"to":"ana","text":"hi"}',
    ]);
    expect(tools.outbox).toEqual([{ to: 'ana', text: 'hi' }]);
  });

  test('a call that is stopped while it takes its time has no effect', async () => {
    const stop = new AbortController();
    const tools = createDemoTools({ pause: async () => stop.abort() });
    const mail = actionOf({ kind: 'tool', tool: 'send_mail', arguments: { to: 'ana', text: 'hi' } });
    expect(await tools.call(mail, stop.signal)).toEqual({
      status: 'error',
      output: null,
      error: 'stopped before it ran',
      code: 'canceled',
    });
    expect(tools.outbox).toEqual([]);
  });

  test.each(['constructor', '__proto__', 'toString', 'nothing'])('%s is not a tool', async (tool) => {
    const result = await createDemoTools().call(actionOf({ kind: 'tool', tool }), never);
    expect(result).toEqual({ status: 'error', output: null, error: `there is no tool called ${tool}` });
  });
});
