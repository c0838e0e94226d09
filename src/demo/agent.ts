/**
 * An agent that is always there: no network, no keys, no clock, no chance. It does what plain words in its task say and
 * shows every kind of thing an agent can do through the bridge. It holds no state of its own: started again after a
 * crash it says and asks the same things under the same names, and the bridge answers what it already knows.
 */
import type { End } from '../model/commands.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { AgentBackend, Sink, Work } from '../ports.ts';
import type { HandOver } from './hand-over.ts';
import { describeStep, readScript, type Step, textOf } from './script.ts';
import { createVoice, type Voice } from './voice.ts';

export interface DemoAgentDeps {
  /** Waits, or stops waiting when the signal fires; either way of ending (resolve or reject) will do. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  readonly name?: string;
  /** Between two steps of long work. */
  readonly stepMs?: number;
  /** Between two pieces of a streamed message; 0 does not wait at all. */
  readonly streamMs?: number;
  /** Gives work to another agent. Without it nobody is behind another name, and a handoff only shows how one is told. */
  readonly handOver?: HandOver;
}

export function createDemoAgent(deps: DemoAgentDeps): AgentBackend {
  const { pause, name = 'demo', stepMs = 100, streamMs = 0, handOver } = deps;
  return {
    name,
    abilities: { resume: true, evidence: 'held', steer: true },
    async start(work, sink, signal) {
      const inbox: string[] = [];
      const wait = async (ms: number) => {
        if (ms > 0 && !signal.aborted) await pause(ms, signal).catch((cause) => unlessStopped(cause, signal));
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

interface Desk {
  readonly name: string;
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly inbox: string[];
  readonly handOver: HandOver | undefined;
  step(): Promise<void>;
  stream(): Promise<void>;
}

async function perform(desk: Desk): Promise<End> {
  const { signal } = desk;
  const steps = readScript(textOf(desk.work.task.input));
  const voice = createVoice({ ...desk, said: await saidBefore(desk.work) });
  const summary: string[] = [];
  try {
    await tellGiver(desk, 'accepted');
    for (const [at, step] of steps.entries()) {
      if (signal.aborted) return canceled(at, steps.length);
      if (steps.length > 1) await voice.plan(steps, at);
      await voice.think(at, step);
      const came = await takeStep(desk, voice, step, at);
      if (typeof came === 'object') {
        await tellGiver(desk, 'failed');
        return came;
      }
      summary.push(came === 'done' ? describeStep(step) : `${describeStep(step)} (${came})`);
      await hear(desk, voice);
      if (signal.aborted) return canceled(at, steps.length);
    }
    if (steps.length > 1) await voice.plan(steps, steps.length);
    await tellGiver(desk, 'completed');
  } catch (cause) {
    unlessStopped(cause, signal);
    return { state: 'CANCELED', summary: 'stopped while a step was under way' };
  }
  return { state: 'COMPLETED', summary: summary.join(', then ') };
}

/** What came of a step that the work goes on after. */
type Came = 'done' | 'not allowed' | 'failed' | 'not answered';

async function takeStep(desk: Desk, voice: Voice, step: Step, at: number): Promise<Came | End> {
  const { sink, work } = desk;
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
      await voice.say(status === 'ok' ? told(output) : `I could not ${intent}: ${error ?? 'the tool did not say why'}`);
      return status === 'ok' ? 'done' : 'failed';
    }
    case 'artifact':
      await produce(desk, voice);
      return 'done';
    case 'ask': {
      const key = `${work.task.id}.ask${at + 1}`;
      const answer = await sink.ask({ kind: 'input', key, question: step.question });
      if (answer.kind === 'value') await voice.say(`You said: ${told(answer.value as Json)}`);
      else if (!desk.signal.aborted) await voice.say(`I got no answer: ${answer.reason ?? answer.kind}`);
      return answer.kind === 'value' ? 'done' : 'not answered';
    }
    case 'work':
      await toil(desk, voice, step.steps);
      return 'done';
    case 'handoff':
      return await handOff(desk, voice, step, at);
    case 'fail':
      return { state: 'FAILED', failure: { code: step.code, message: 'the demo agent was asked to fail' } };
  }
}

async function produce({ sink }: Desk, voice: Voice): Promise<void> {
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

/** Long work, in steps small enough to be stopped between any two. "stop" in a message ends it early, as done. */
async function toil(desk: Desk, voice: Voice, steps: number): Promise<void> {
  const message = voice.open();
  let done = 0;
  while (done < steps && !desk.signal.aborted) {
    if (desk.inbox.some((text) => /\bstop\b/i.test(text))) break;
    await desk.step();
    if (desk.signal.aborted) return;
    done += 1;
    await message.add(`step ${done} of ${steps}\n`);
  }
  if (!desk.signal.aborted) await message.close();
}

/** Decided like any act, told when it is taken and when it is back, and proven by the receipt of the work that was given. */
async function handOff(desk: Desk, voice: Voice, { to, work: given }: Handoff, at: number): Promise<Came> {
  const { sink, work } = desk;
  const nobody = `${work.task.id}.handoff${at + 1}`;
  const tell = (status: string, told: JsonObject = {}) =>
    sink.emit({ event: 'agent.handoff', payload: { target_agent: to, task_id: nobody, ...told, status } });
  const proposed = {
    kind: 'handoff',
    tool_call_id: `${work.task.id}.call${at + 1}`,
    tool: 'handoff',
    target: to,
    effect: 'execute',
    arguments: { to, work: given },
  } as const;
  const outcome = await sink.act(proposed, async (args, signal) => {
    if (!desk.handOver) {
      await tell('accepted');
      return { status: 'ok', output: { text: `${to} took the work and gave it back, done.` } };
    }
    const accepted = (task_id: string) => tell('accepted', { task_id });
    const handed = await desk.handOver(to, String(args.work), work.task, accepted, signal);
    const { task_id, receipt_id = null, state, text } = handed;
    const output = { text: `${to} says: ${text}`, task_id, receipt_id };
    return state === 'COMPLETED'
      ? { status: 'ok', output }
      : { status: 'error', output, error: `it ended as ${state}` };
  });
  if (outcome.kind === 'refused') {
    await tell('rejected');
    await voice.say(`I was not allowed to hand off to ${to}: ${outcome.reason}`);
    return 'not allowed';
  }
  const { status, output, error } = outcome.result;
  const { task_id, receipt_id } = (output ?? {}) as JsonObject;
  await tell(status === 'ok' ? 'completed' : 'failed', {
    ...(typeof task_id === 'string' && { task_id }),
    ...(typeof receipt_id === 'string' && { receipt_id }),
  });
  await voice.say(status === 'ok' ? told(output) : `The handoff to ${to} failed: ${error ?? ''}`);
  return status === 'ok' ? 'done' : 'failed';
}

/** The other end of a handoff: work that came from another task names it, so that each receipt leads to the other. */
async function tellGiver({ name, work, sink }: Desk, status: string): Promise<void> {
  const { task_id } = (work.task.metadata.handoff ?? {}) as JsonObject;
  if (typeof task_id !== 'string') return;
  await sink.emit({ event: 'agent.handoff', payload: { target_agent: name, task_id, status } });
}

/** After a crash: the names of this task's messages that are in the transcript already. */
async function saidBefore({ task, resumed, transcript }: Work): Promise<ReadonlySet<string>> {
  const said = new Set<string>();
  if (resumed) for await (const { id } of transcript()) if (id.startsWith(`${task.id}.`)) said.add(id);
  return said;
}

/** Messages that arrived while it worked are acknowledged between steps. */
async function hear({ inbox }: Desk, voice: Voice): Promise<void> {
  for (const text of inbox.splice(0)) await voice.note(`Noted: ${text}`);
}

/** What a tool or a person said, as a sentence. */
function told(value: Json): string {
  if (typeof value === 'string') return value;
  const text = (value as JsonObject | null)?.text;
  return typeof text === 'string' ? text : JSON.stringify(value);
}

function canceled(at: number, of: number): End {
  return { state: 'CANCELED', summary: `stopped after ${at} of ${of} steps` };
}

/** Once stopped, whatever a wait or a write throws is only the echo of being stopped. */
function unlessStopped(cause: unknown, signal: AbortSignal): void {
  if (!signal.aborted) throw cause;
}
