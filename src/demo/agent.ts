/**
 * A built-in agent: no network, no keys, no clock, no randomness. It follows the plain words of its task and shows
 * every operation an agent can perform through the bridge. It holds no state of its own: started again after a crash it
 * emits the same messages and questions under the same ids, and the bridge answers those it already knows.
 */
import type { End } from '../model/commands.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { isObject } from '../model/values/is-object.ts';
import type { AgentBackend, Sink, Work } from '../ports/index.ts';
import type { HandOver } from './hand-over.ts';
import { describeStep, readScript, type Step, textOf } from './script.ts';
import { createVoice, type Voice } from './voice.ts';

export interface DemoAgentDeps {
  /** Waits until the time is over or the signal fires; it may resolve or reject. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  readonly name?: string;
  /** Between two steps of long work. */
  readonly stepMs?: number;
  /** Between two pieces of a streamed message; 0 does not wait at all. */
  readonly streamMs?: number;
  /** Hands work to another agent. Without it there is no other agent, and a handoff is only reported. */
  readonly handOver?: HandOver;
}

export function createDemoAgent(deps: DemoAgentDeps): AgentBackend {
  const { pause, name = 'demo', stepMs = 100, streamMs = 0, handOver } = deps;
  return {
    name,
    abilities: { resume: true, evidence: 'held', steer: true, reruns: true, inputs: true },
    async start(work, sink, signal) {
      const inbox: string[] = [];
      const wait = async (ms: number) => {
        // In a replay no time passes.
        if (ms > 0 && !signal.aborted && !work.recorded)
          await pause(ms, signal).catch((cause) => unlessStopped(cause, signal));
      };
      return {
        done: perform({
          name,
          work,
          sink,
          signal,
          inbox,
          handOver,
          step: () => wait(stepMs),
          stream: () => wait(streamMs),
        }),
        steer: (message) => {
          inbox.push(textOf(message));
        },
      };
    },
  };
}

type Handoff = Extract<Step, { do: 'handoff' }>;

interface Run {
  readonly name: string;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly inbox: string[];
  readonly handOver: HandOver | undefined;
  step(): Promise<void>;
  stream(): Promise<void>;
}

async function perform(run: Run): Promise<End> {
  const { signal } = run;
  const steps = readScript(textOf(run.work.task.input));
  const voice = createVoice({ ...run, said: await saidBefore(run.work) });
  const summary: string[] = [];
  try {
    await reportToParent(run, 'accepted');
    for (const [at, planned] of steps.entries()) {
      if (signal.aborted) return canceled(at, steps.length);
      if (steps.length > 1) await voice.plan(steps, at);
      const step = await voice.think(at, planned);
      const came = await takeStep(run, voice, step, at);
      if (typeof came === 'object') {
        await reportToParent(run, 'failed');
        return came;
      }
      summary.push(came === 'done' ? describeStep(step) : `${describeStep(step)} (${came})`);
      await acknowledge(run, voice);
      if (signal.aborted) return canceled(at, steps.length);
    }
    if (steps.length > 1) await voice.plan(steps, steps.length);
    await reportToParent(run, 'completed');
  } catch (cause) {
    unlessStopped(cause, signal);
    return { state: 'CANCELED', summary: 'stopped while a step was under way' };
  }
  return { state: 'COMPLETED', summary: summary.join(', then ') };
}

/** The outcome of a step after which the work continues. */
type Came = 'done' | 'not allowed' | 'failed' | 'not answered';

async function takeStep(run: Run, voice: Voice, step: Step, at: number): Promise<Came | End> {
  const { sink, work } = run;
  switch (step.do) {
    case 'say':
      await voice.say(step.text);
      return 'done';
    case 'call': {
      const { tool, target, effect, intent } = step;
      const tool_call_id = `${work.task.id}.call${at + 1}`;
      const outcome = await sink.act({ kind: 'tool', tool_call_id, tool, target, effect, arguments: step.arguments });
      if (outcome.kind === 'refused') {
        await voice.say(`I was not allowed to ${intent}: ${outcome.reason}`);
        return 'not allowed';
      }
      const { status, output, error } = outcome.result;
      await voice.say(
        status === 'ok' ? textIn(output) : `I could not ${intent}: ${error ?? 'the tool did not say why'}`,
      );
      return status === 'ok' ? 'done' : 'failed';
    }
    case 'artifact':
      await produce(run, voice);
      return 'done';
    case 'recall': {
      const known = (work.memories ?? []).map(({ content }) => textIn(content as Json));
      await voice.say(known.length > 0 ? `I remember: ${known.join('; ')}` : 'I remember nothing.');
      return 'done';
    }
    case 'input': {
      // A secret is never recorded: a replay has it only where it is overridden.
      const value = work.recorded ? await work.recorded.secret(step.name) : work.inputs?.value(step.name);
      await voice.say(value === undefined ? `I have no input ${step.name}.` : `I can use the input ${step.name}.`);
      return 'done';
    }
    case 'remember': {
      const { text: content, scope } = step;
      const tool_call_id = `${work.task.id}.call${at + 1}`;
      const wanted = { kind: 'memory.write', tool_call_id, tool: 'memory', arguments: { scope, content } } as const;
      const kept = await sink.act(wanted);
      if (kept.kind === 'refused') {
        await voice.say(`I was not allowed to remember that: ${kept.reason}`);
        return 'not allowed';
      }
      const { status, error } = kept.result;
      await voice.say(
        status === 'ok' ? 'I will remember that.' : `I could not remember that: ${error ?? 'nobody said why'}`,
      );
      return status === 'ok' ? 'done' : 'failed';
    }
    case 'ask': {
      const key = `${work.task.id}.ask${at + 1}`;
      const answer = await sink.ask({ kind: 'input', key, question: step.question });
      if (answer.kind === 'value') await voice.say(`You said: ${textIn(answer.value as Json)}`);
      else if (!run.signal.aborted) await voice.say(`I got no answer: ${answer.reason ?? answer.kind}`);
      return answer.kind === 'value' ? 'done' : 'not answered';
    }
    case 'work':
      await toil(run, voice, step.steps);
      return 'done';
    case 'handoff':
      return await handOff(run, voice, step, at);
    case 'fail':
      return { state: 'FAILED', failure: { code: step.code, message: 'the demo agent was asked to fail' } };
  }
}

async function produce({ sink }: Run, voice: Voice): Promise<void> {
  const before = '# Report\n';
  const after = '# Report\n\nNothing went wrong.\n';
  const patch = '--- a/report.md\n+++ b/report.md\n@@ -1 +1,3 @@\n # Report\n+\n+Nothing went wrong.\n';
  const file = await sink.artifact({
    kind: 'file',
    name: 'report.md',
    mime_type: 'text/markdown',
    bytes: Buffer.from(after),
  });
  const diff = await sink.artifact({
    kind: 'patch',
    name: 'report.patch',
    mime_type: 'text/x-diff',
    bytes: Buffer.from(patch),
    metadata: { lines_before: before.split('\n').length - 1 },
  });
  await voice.say('I wrote report.md, and a patch that shows what changed.', [file.id, diff.id]);
}

/** Long work, in small steps that can be stopped between any two. "stop" in a message ends it early, as done. */
async function toil(run: Run, voice: Voice, steps: number): Promise<void> {
  const message = voice.open();
  let done = 0;
  while (done < steps && !run.signal.aborted) {
    if (run.inbox.some((text) => /\bstop\b/i.test(text))) break;
    await run.step();
    if (run.signal.aborted) return;
    done += 1;
    await message.add(`step ${done} of ${steps}\n`);
  }
  if (!run.signal.aborted) await message.close();
}

/**
 * Decided like any act, reported when it is accepted and when it ends, and linked to the receipt of the handed-over
 * task.
 */
async function handOff(run: Run, voice: Voice, { to, work: request }: Handoff, at: number): Promise<Came> {
  const { sink, work } = run;
  const unknownTask = `${work.task.id}.handoff${at + 1}`;
  const report = (status: string, more: JsonObject = {}) =>
    sink.emit({ event: 'agent.handoff', payload: { target_agent: to, task_id: unknownTask, ...more, status } });
  const proposed = {
    kind: 'handoff',
    tool_call_id: `${work.task.id}.call${at + 1}`,
    tool: 'handoff',
    target: to,
    effect: 'execute',
    arguments: { to, work: request },
  } as const;
  const outcome = await sink.act(proposed, async (args, signal) => {
    if (!run.handOver) {
      await report('accepted');
      return { status: 'ok', output: { text: `${to} took the work and gave it back, done.` } };
    }
    const accepted = (task_id: string) => report('accepted', { task_id });
    const handed = await run.handOver(to, String(args.work), work.task, accepted, signal);
    const { task_id, receipt_id = null, state, text } = handed;
    const output = { text: `${to} says: ${text}`, task_id, receipt_id };
    return state === 'COMPLETED'
      ? { status: 'ok', output }
      : { status: 'error', output, error: `it ended as ${state}` };
  });
  if (outcome.kind === 'refused') {
    await report('rejected');
    await voice.say(`I was not allowed to hand off to ${to}: ${outcome.reason}`);
    return 'not allowed';
  }
  const { status, output, error } = outcome.result;
  const { task_id, receipt_id } = (output ?? {}) as JsonObject;
  await report(status === 'ok' ? 'completed' : 'failed', {
    ...(typeof task_id === 'string' && { task_id }),
    ...(typeof receipt_id === 'string' && { receipt_id }),
  });
  await voice.say(status === 'ok' ? textIn(output) : `The handoff to ${to} failed: ${error ?? ''}`);
  return status === 'ok' ? 'done' : 'failed';
}

/**
 * The other end of a handoff: work that came from another task names that task, so that each receipt leads to the
 * other.
 */
async function reportToParent({ name, work, sink }: Run, status: string): Promise<void> {
  const { task_id } = (work.task.metadata.handoff ?? {}) as JsonObject;
  if (typeof task_id !== 'string') return;
  await sink.emit({ event: 'agent.handoff', payload: { target_agent: name, task_id, status } });
}

/** After a crash: the ids of this task's messages that are already in the transcript. */
async function saidBefore({ task, resumed, transcript }: Work): Promise<ReadonlySet<string>> {
  const said = new Set<string>();
  if (resumed) for await (const { id } of transcript()) if (id.startsWith(`${task.id}.`)) said.add(id);
  return said;
}

/** Acknowledges, between steps, messages that arrived meanwhile. */
async function acknowledge({ inbox }: Run, voice: Voice): Promise<void> {
  for (const text of inbox.splice(0)) await voice.note(`Noted: ${text}`);
}

/** The text in a tool's output or a person's answer. */
function textIn(value: Json): string {
  if (typeof value === 'string') return value;
  const { text, content } = (value ?? {}) as JsonObject;
  if (typeof text === 'string') return text;
  // A tool server's result: a list of blocks.
  const blocks = Array.isArray(content) ? content.map((block) => (isObject(block) ? block.text : undefined)) : [];
  const said = blocks.filter((each) => typeof each === 'string');
  return said.length > 0 ? said.join('\n') : JSON.stringify(value);
}

function canceled(at: number, of: number): End {
  return { state: 'CANCELED', summary: `stopped after ${at} of ${of} steps` };
}

/** After a stop, errors of waits and writes are consequences of the stop. */
function unlessStopped(cause: unknown, signal: AbortSignal): void {
  if (!signal.aborted) throw cause;
}
