/** The eight typed events, each decided by the gate and answered in the words of its own family. */
import type { Family } from '../../../../mappings/ahp.ts';
import {
  asText,
  type Bridge,
  comparableHash,
  type Deps,
  isObject,
  type Json,
  type JsonObject,
  memoryRead,
} from '../../../../src/index.ts';
import { additionsIn, factsIn } from '../../additions.ts';
import { type AhpSettings, honouredBy } from '../../config.ts';
import { type AhpEvent, asHonoured, fingerprint, type GateDecision, intentOf, toWireRefusal } from '../../translate.ts';
import type { SupervisedRun } from '../supervised-tasks.ts';
import { readPayload } from '../tolerant.ts';
import { type Asker, type GateQuestions, toAction } from './ask-gate.ts';
import { type RecallQuery, type Remembered, recall } from './memory.ts';
import { waitForQuota } from './quotas.ts';

export interface TypedEventsDeps {
  readonly bridge: Bridge;
  readonly gate: GateQuestions;
  readonly settings: AhpSettings;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

export type TypedEvents = Readonly<
  Record<Exclude<Family, 'generic'>, (event: AhpEvent, asker: Asker) => Promise<JsonObject>>
>;

export function createTypedEvents({ bridge, gate, settings, deps }: TypedEventsDeps): TypedEvents {
  /** The memories that may be returned, each recorded before it is. */
  async function remember(run: SupervisedRun, query: string, wanted: RecallQuery): Promise<readonly Remembered[]> {
    const found = await recall(bridge, run.actor, run.sessionId, { ...wanted, query });
    await gate.report(
      run,
      found.map(({ memory }) => memoryRead(memory, comparableHash, query)),
    );
    return found;
  }

  /** A typed event: its payload, decoded strictly or after corrections, and the gate's decision. */
  async function typed(type: Exclude<Family, 'generic'>, event: AhpEvent, asker: Asker) {
    const { value: payload, mended } = readPayload(type, event.payload, event);
    if (mended) deps.log.info({ event: type, agent: event.agent_id, mended }, 'a payload was read with mending');
    const { session_id: _, ...input } = payload;
    const args = type === 'reasoning' ? unspoken(input) : input;
    const named = type === 'confirmation' ? { tool: `confirmation:${wordOf(payload.confirmation_type)}` } : {};
    const action = { ...toAction(event, args), ...named };
    const held = type === 'confirmation' ? asker : { ...asker, timeout: { ...asker.timeout, hold: false } };
    const honoured = honouredBy(settings, asker.framework);
    const takesArguments = APPLIED_HERE.has(type) || type === 'context_perception' || honoured.has('modify');
    const answered = await gate.askGate(event, held, { action, takesArguments });
    // The answers of these two only say when to come back, so they hold nothing to disobey.
    const gateDecision =
      type === 'idle' || type === 'rate_limit' ? answered.gateDecision : asHonoured(answered.gateDecision, honoured);
    return { payload, ...answered, gateDecision, rewrites: honoured.has('modify') };
  }

  return {
    async idle(event, asker) {
      const { gateDecision } = await typed('idle', event, asker);
      return passes(gateDecision) ? { decision: 'allow' } : toWireRefusal('idle', gateDecision);
    },

    async intent_detection(event, asker) {
      const { gateDecision, payload } = await typed('intent_detection', event, asker);
      if (gateDecision.verdict !== 'allow') return toWireRefusal('intent_detection', gateDecision);
      const intent = intentOf(asText(payload.prompt));
      if (!intent) return { decision: 'block', reason: 'use local detection' };
      return { decision: 'allow', detected_intent: intent, confidence: 0.6 };
    },

    async context_perception(event, asker) {
      const { gateDecision, payload, run, rewrites } = await typed('context_perception', event, asker);
      const added = additionsIn(gateDecision.arguments);
      if (gateDecision.verdict === 'modify' && added === undefined) {
        if (!rewrites) return toWireRefusal('context_perception', { ...gateDecision, verdict: 'block' });
        const hints = gateDecision.arguments?.scope_hints;
        return {
          decision: 'refine',
          refined_intent: null,
          refined_target: null,
          scope_hints: Array.isArray(hints) ? hints.map(String) : [gateDecision.reason],
        };
      }
      if (!passes(gateDecision)) return toWireRefusal('context_perception', gateDecision);
      const { context, target, constraints } = payload as { [key: string]: JsonObject };
      const query = [context?.query, context?.current_task, ...wordsIn(target)].filter((word) => word).join(' ');
      const limit = typeof constraints?.max_results === 'number' ? constraints.max_results : 10;
      const facts = await remember(run, query, { limit });
      const injected = isObject(added) ? (added as JsonObject) : {};
      const all = [...facts.map(({ fact }) => fact), ...factsIn(injected.facts)];
      return { decision: 'allow', injected_context: { ...injected, facts: all } };
    },

    async memory_recall(event, asker) {
      const { gateDecision, payload, run } = await typed('memory_recall', event, asker);
      if (!passes(gateDecision)) return toWireRefusal('memory_recall', gateDecision);
      const asked = { ...payload, ...gateDecision.arguments };
      const limit = Math.min(Number(asked.max_results) || 0, Number(payload.max_results));
      const facts = await remember(run, asText(asked.query), { limit, type: asText(asked.memory_type) });
      const all = [...facts.map(({ fact }) => fact), ...factsIn(additionsIn(gateDecision.arguments))];
      return { decision: 'allow', injected_facts: all.slice(0, Math.max(limit, 0)) };
    },

    async planning(event, asker) {
      const { gateDecision, payload, run } = await typed('planning', event, asker);
      if (gateDecision.verdict === 'modify') {
        const task = gateDecision.arguments?.task_description;
        if (typeof task !== 'string') return toWireRefusal('planning', { ...gateDecision, verdict: 'block' });
        return { decision: 'modify', modified_task: task, hints: [gateDecision.reason] };
      }
      if (gateDecision.verdict !== 'allow') return toWireRefusal('planning', gateDecision);
      const [first = 'none'] = payload.available_strategies as readonly Json[];
      const summary = { strategy: first, task: payload.task_description as Json };
      await gate.report(run, [{ event: 'agent.reasoning_summary', payload: summary }]);
      return { decision: 'allow', selected_strategy: first };
    },

    async reasoning(event, asker) {
      const { gateDecision, payload, run } = await typed('reasoning', event, asker);
      const summary = { reasoning_type: payload.reasoning_type as Json, verdict: gateDecision.verdict };
      await gate.report(run, [{ event: 'agent.reasoning_summary', payload: summary }]);
      if (!passes(gateDecision)) return toWireRefusal('reasoning', gateDecision);
      if (gateDecision.verdict !== 'modify') return { decision: 'allow' };
      const added = additionsIn(gateDecision.arguments);
      return { decision: 'allow', hints: Array.isArray(added) ? added.map(asText) : [gateDecision.reason] };
    },

    async rate_limit(event, asker) {
      const { gateDecision, payload, run } = await typed('rate_limit', event, asker);
      const own = Number(payload.retry_after_ms);
      if (!passes(gateDecision)) return toWireRefusal('rate_limit', gateDecision);
      const quota = await waitForQuota(bridge, run, payload.limit_type as Json, deps.clock.now());
      const said = quota ?? { verdict: 'allow', reason: '', retry_after_ms: own };
      const retry = Math.max(own, said.retry_after_ms ?? own, Number(gateDecision.arguments?.retry_after_ms ?? 0) || 0);
      const limits = { limit_type: payload.limit_type as Json, retry_after_ms: retry, verdict: said.verdict };
      await gate.report(run, [{ event: 'span.updated', payload: limits }]);
      return toWireRefusal('rate_limit', { ...said, retry_after_ms: retry } as GateDecision);
    },

    async confirmation(event, asker) {
      const { gateDecision } = await typed('confirmation', event, asker);
      return gateDecision.verdict === 'allow' ? { decision: 'approve' } : toWireRefusal('confirmation', gateDecision);
    },
  };
}

/** A rule's rewrite of these applies to our own answer; the agent has nothing to rewrite. */
const APPLIED_HERE: ReadonlySet<Family> = new Set(['memory_recall', 'rate_limit', 'reasoning']);

/** Reasoning is decided about and not repeated: its kind and its hash stand for it. */
function unspoken({ reasoning_type = null, ...hidden }: JsonObject): JsonObject {
  return { reasoning_type, content_hash: fingerprint(hidden as Json) };
}

function passes({ verdict }: GateDecision): boolean {
  return verdict === 'allow' || verdict === 'modify';
}

function wordsIn(target: JsonObject | undefined): string[] {
  return Object.values(target ?? {}).flatMap((inner) =>
    typeof inner === 'object' && inner !== null
      ? Object.values(inner as JsonObject).filter((value): value is string => typeof value === 'string')
      : [],
  );
}

/** `safety_confirm`, or the name inside `{"custom":"legal"}`. */
function wordOf(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  const [name] = Object.values((value ?? {}) as JsonObject);
  return typeof name === 'string' ? name : 'unknown';
}
