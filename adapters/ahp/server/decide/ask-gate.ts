/** What every question of an agent has in common: its task, the act it is submitted as, the facts reported with it. */
import { eventRow } from '../../../../mappings/ahp.ts';
import type { Actor, Bridge, Fact, JsonObject, ProposedAction } from '../../../../src/index.ts';
import { type AhpEvent, attributesOf, contextOf } from '../../translate.ts';
import { extOf, openingOf, traceOf } from '../event-members.ts';
import type { Runs, SupervisedRun } from '../supervised-tasks.ts';
import type { ActQuestion, Authorizer, GateAnswer, HoldTimeout } from './authorize.ts';

export interface Asker {
  readonly actor: Actor;
  readonly timeout: HoldTimeout;
  readonly framework?: string;
  readonly request_id?: string;
}

export interface GateQuestions {
  askGate(
    event: AhpEvent,
    asker: Asker,
    question: Omit<ActQuestion, 'ext'>,
  ): Promise<GateAnswer & { readonly run: SupervisedRun }>;
  report(run: SupervisedRun, facts: readonly Fact[]): Promise<void>;
}

export function createGateQuestions(bridge: Bridge, runs: Runs, authorizer: Authorizer): GateQuestions {
  return {
    async askGate(event, asker, question) {
      const run = await runs.caughtUp(asker.actor, event, () => openingOf(event, asker.framework));
      const answered = await authorizer.ask(
        asker.actor,
        run,
        { ...question, ext: extOf(event, asker.request_id), ...traceOf(event) },
        asker.timeout,
      );
      return { run, ...answered };
    },

    async report(run, facts) {
      if (facts.length === 0) return;
      await bridge.submit({
        kind: 'task.report',
        actor: run.actor,
        body: { task_id: run.taskId, facts: [...facts] },
      });
    },
  };
}

export function toAction(event: AhpEvent, args: JsonObject): ProposedAction {
  const { action: kind = 'extension', effect = 'unknown' } = eventRow(event.event_type);
  const [attributes, context] = [attributesOf(event), contextOf(event)];
  return {
    kind,
    tool: event.event_type,
    server: 'ahp',
    arguments: args,
    effect,
    evidence: 'asked',
    attributes,
    context,
  };
}
