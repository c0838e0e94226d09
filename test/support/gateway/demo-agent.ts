/** The demo agent at work, on a bridge that only remembers. */
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools, type DemoTools } from '../../../src/demo/tools.ts';
import type { Action, NewArtifact } from '../../../src/model/actions.ts';
import type { Answer } from '../../../src/model/asks.ts';
import type { End, Fact, ProposedAction } from '../../../src/model/commands.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { ActResult, Question, Run, Sink, Work } from '../../../src/ports/index.ts';

export const TIME = '2026-02-03T04:05:06.000Z';

export function workOf(input: JsonObject): Work {
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

/** A bridge that allows everything but what it is asked to refuse, and remembers what it received. */
export class FakeBridge implements Sink {
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

export function actionOf(proposed: ProposedAction): Action {
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

export async function perform(
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
