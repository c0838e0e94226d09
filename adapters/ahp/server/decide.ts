/**
 * Events that an agent waits on, each submitted to the gate as an act and answered in the words of its family. Nothing here
 * allows by itself: an event that cannot be read, decided or recorded is refused.
 */

import { type EventType, eventRow, type Family } from '../../../mappings/ahp.ts';
import {
  type Actor,
  asFault,
  asText,
  type Bridge,
  comparableHash,
  type Deps,
  type Fact,
  type Json,
  type JsonObject,
  memoryRead,
  type ProposedAction,
} from '../../../src/index.ts';
import { type AhpSettings, honouredBy } from '../config.ts';
import { Misfit } from '../decode.ts';
import { inTime } from '../timeout.ts';
import {
  type AhpEvent,
  asHonoured,
  attributesOf,
  besideArguments,
  failed,
  fingerprint,
  type GateDecision,
  intentOf,
  promptOf,
  readCall,
  rewriteCall,
  rewritePrompt,
  toCoreAction,
  toWireGeneric,
  toWireRefusal,
  viaOf,
} from '../translate.ts';
import type { ActQuestion, Authorizer, HoldTimeout } from './authorize.ts';
import { type RecallQuery, type Remembered, recall } from './memory.ts';
import { notSeen } from './open-calls.ts';
import { waitForQuota } from './quotas.ts';
import type { Run, Runs } from './supervised-tasks.ts';
import { readPayload } from './tolerant.ts';

export interface Asker {
  readonly actor: Actor;
  readonly timeout: HoldTimeout;
  readonly framework?: string;
  readonly request_id?: string;
}

export interface Decider {
  /** Always an answer of the event's family, and always within the time limit. */
  decide(event: AhpEvent, asker: Asker): Promise<JsonObject>;
}

export interface DeciderDeps {
  readonly bridge: Bridge;
  readonly runs: Runs;
  readonly authorizer: Authorizer;
  readonly settings: AhpSettings;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

export function createDecider({ bridge, runs, authorizer, settings, deps }: DeciderDeps): Decider {
  async function askGate(event: AhpEvent, asker: Asker, question: Omit<ActQuestion, 'ext'>) {
    const run = await runs.caughtUp(asker.actor, event, () => openingOf(event, asker.framework));
    const answered = await authorizer.ask(
      asker.actor,
      run,
      { ...question, ext: extOf(event, asker.request_id), ...traceOf(event) },
      asker.timeout,
    );
    return { run, ...answered };
  }

  async function preAction(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    const call = readCall(event.payload);
    const print = fingerprint(call.tool, call.arguments);
    const action = toCoreAction(event, call, settings.effects);
    const honoured = honouredBy(settings, asker.framework);
    const beside = besideArguments(event.payload, call);
    // It is unknown which of the two a rewrite would have to change.
    const takesArguments = honoured.has('modify') && !beside;
    const asked = beside ? fingerprint(call.tool, call.arguments, beside) : print;
    const { run, gateDecision, call_id } = await askGate(event, asker, { action, takesArguments, fingerprint: asked });
    const said = toWireGeneric(asHonoured(gateDecision, honoured), rewriteCall(event.payload, call));
    if (!call_id) return said;
    const now = Date.parse(deps.clock.now());
    const known = { id: call_id, tool: call.tool };
    if (said.decision !== 'allow' && said.decision !== 'modify') {
      run.refused.add(print, known, now);
      run.refused.giveUp(now);
      if (gateDecision.verdict === 'modify') await calledOff(run, call_id, call.tool);
      return said;
    }
    run.open.add(gateDecision.arguments ? fingerprint(call.tool, gateDecision.arguments) : print, known, now);
    giveUp(run, now);
    return said;
  }

  /** Not awaited: calls that cannot be recorded now are closed with the task. */
  function giveUp(run: Run, now: number): void {
    const unseen = run.open.giveUp(now);
    if (unseen.length === 0) return;
    run.unseen += unseen.length;
    runs
      .inOrder(run.actor, run, () => report(run, unseen.map(notSeen)))
      .catch((cause) => deps.log.warn({ err: cause, task: run.taskId }, 'calls without an outcome stay open'));
  }

  /** Allowed in the log but refused on the wire: the log must record what really happened. */
  async function calledOff(run: Run, callId: string | undefined, tool: string): Promise<void> {
    if (!callId) return;
    run.open.drop(callId);
    const payload = {
      tool_call_id: callId,
      name: tool,
      status: 'error',
      error: 'the agent got a refusal',
      code: 'called_off',
    };
    await report(run, [{ event: 'tool.failed', payload }]);
  }

  async function prePrompt(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    const prompt = promptOf(event.payload);
    const input = prompt ? { prompt: prompt.text } : ((event.payload ?? {}) as JsonObject);
    const args = typeof input === 'object' && !Array.isArray(input) ? input : { prompt: input };
    const action = { ...toAction(event, args), tool: 'prompt' };
    const honoured = honouredBy(settings, asker.framework);
    const { run, gateDecision: decided } = await askGate(event, asker, {
      action,
      takesArguments: honoured.has('modify'),
    });
    const gateDecision = asHonoured(decided, honoured);
    if (gateDecision.verdict === 'allow' || gateDecision.verdict === 'modify') {
      const text = (gateDecision.arguments?.prompt ?? prompt?.text) as Json | undefined;
      run.prompts += 1;
      run.spans += 1;
      const span = { id: `${run.taskId}.span${run.spans}`, kind: 'llm', call_id: `${run.taskId}.llm${run.spans}` };
      await report(run, [
        ...(run.prompts === 1 && typeof text === 'string'
          ? [{ event: 'user.message', payload: says('user', text) }]
          : []),
        { event: 'span.started', payload: { span } },
      ]);
    }
    return toWireGeneric(gateDecision, rewritePrompt(event.payload));
  }

  function toAction(event: AhpEvent, args: JsonObject): ProposedAction {
    const { action: kind = 'extension', effect = 'unknown' } = eventRow(event.event_type);
    const attributes = attributesOf(event);
    return { kind, tool: event.event_type, server: 'ahp', arguments: args, effect, evidence: 'asked', attributes };
  }

  async function report(run: Run, facts: readonly Fact[]): Promise<void> {
    if (facts.length === 0) return;
    await bridge.submit({
      kind: 'task.report',
      actor: run.actor,
      body: { task_id: run.taskId, facts: [...facts] },
    });
  }

  /** The memories that may be returned, each recorded before it is. */
  async function remember(run: Run, query: string, wanted: RecallQuery): Promise<readonly Remembered[]> {
    const found = await recall(bridge, run.actor, run.sessionId, { ...wanted, query });
    await report(
      run,
      found.map(({ memory }) => memoryRead(memory, comparableHash, query)),
    );
    return found;
  }

  const families: Record<Exclude<Family, 'generic'>, (event: AhpEvent, asker: Asker) => Promise<JsonObject>> = {
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
      const { gateDecision, payload, run } = await typed('context_perception', event, asker);
      if (gateDecision.verdict === 'modify') {
        const hints = gateDecision.arguments?.scope_hints;
        return {
          decision: 'refine',
          refined_intent: null,
          refined_target: null,
          scope_hints: Array.isArray(hints) ? hints.map(String) : [gateDecision.reason],
        };
      }
      if (gateDecision.verdict !== 'allow') return toWireRefusal('context_perception', gateDecision);
      const { context, target, constraints } = payload as { [key: string]: JsonObject };
      const query = [context?.query, context?.current_task, ...wordsIn(target)].filter((word) => word).join(' ');
      const limit = typeof constraints?.max_results === 'number' ? constraints.max_results : 10;
      const facts = await remember(run, query, { limit });
      return { decision: 'allow', injected_context: { facts: facts.map(({ fact }) => fact) } };
    },

    async memory_recall(event, asker) {
      const { gateDecision, payload, run } = await typed('memory_recall', event, asker);
      if (!passes(gateDecision)) return toWireRefusal('memory_recall', gateDecision);
      const asked = { ...payload, ...gateDecision.arguments };
      const limit = Math.min(Number(asked.max_results) || 0, Number(payload.max_results));
      const facts = await remember(run, asText(asked.query), { limit, type: asText(asked.memory_type) });
      return { decision: 'allow', injected_facts: facts.map(({ fact }) => fact) };
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
      await report(run, [{ event: 'agent.reasoning_summary', payload: summary }]);
      return { decision: 'allow', selected_strategy: first };
    },

    async reasoning(event, asker) {
      const { gateDecision, payload, run } = await typed('reasoning', event, asker);
      const summary = { reasoning_type: payload.reasoning_type as Json, verdict: gateDecision.verdict };
      await report(run, [{ event: 'agent.reasoning_summary', payload: summary }]);
      if (!passes(gateDecision)) return toWireRefusal('reasoning', gateDecision);
      return gateDecision.verdict === 'modify'
        ? { decision: 'allow', hints: [gateDecision.reason] }
        : { decision: 'allow' };
    },

    async rate_limit(event, asker) {
      const { gateDecision, payload, run } = await typed('rate_limit', event, asker);
      const own = Number(payload.retry_after_ms);
      if (!passes(gateDecision)) return toWireRefusal('rate_limit', gateDecision);
      const quota = await waitForQuota(bridge, run, payload.limit_type as Json, deps.clock.now());
      const said = quota ?? { verdict: 'allow', reason: '', retry_after_ms: own };
      const retry = Math.max(own, said.retry_after_ms ?? own, Number(gateDecision.arguments?.retry_after_ms ?? 0) || 0);
      const limits = { limit_type: payload.limit_type as Json, retry_after_ms: retry, verdict: said.verdict };
      await report(run, [{ event: 'span.updated', payload: limits }]);
      return toWireRefusal('rate_limit', { ...said, retry_after_ms: retry } as GateDecision);
    },

    async confirmation(event, asker) {
      const { gateDecision } = await typed('confirmation', event, asker);
      return gateDecision.verdict === 'allow' ? { decision: 'approve' } : toWireRefusal('confirmation', gateDecision);
    },
  };

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
    const takesArguments = APPLIED_HERE.has(type) || honoured.has('modify');
    const answered = await askGate(event, held, { action, takesArguments });
    // The answers of these two only say when to come back, so they hold nothing to disobey.
    const gateDecision =
      type === 'idle' || type === 'rate_limit' ? answered.gateDecision : asHonoured(answered.gateDecision, honoured);
    return { payload, ...answered, gateDecision };
  }

  function answer(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    const family = familyOf(event.event_type);
    if (family !== 'generic') return families[family](event, asker);
    return event.event_type === 'pre_prompt' ? prePrompt(event, asker) : preAction(event, asker);
  }

  return {
    async decide(event, asker) {
      const family = familyOf(event.event_type);
      if (viaOf(event.metadata).includes(settings.hop)) {
        return toWireRefusal(
          family,
          failed(`${settings.hop} is asked about its own question: harnesses go in a circle`),
        );
      }
      const answered = answer(event, asker).catch((cause) => {
        if (!(cause instanceof Misfit) && asFault(cause).kind === 'internal') {
          deps.log.error({ err: cause, event: event.event_type }, 'a question of an agent failed');
        }
        return toWireRefusal(family, whyNot(cause));
      });
      const first = await inTime(answered, asker.timeout.until, LAST_WORD_MS);
      if (first !== 'late') return first;
      answered
        .then((said) => tooLate(event, asker, said))
        .catch((cause) => deps.log.error({ err: cause }, 'what came of a late decision could not be written down'));
      return toWireRefusal(family, failed('it was not decided in time'));
    },
  };

  /** The agent received a no; if the log now has a yes, it must not look as if the act may have run. */
  async function tooLate(event: AhpEvent, { actor }: Asker, said: JsonObject): Promise<void> {
    deps.log.warn({ event: event.event_type, decision: said.decision }, 'a decision came too late and was not sent');
    if (event.event_type !== 'pre_action') return;
    const call = readCall(event.payload);
    const run = await runs.open(actor, event, openingOf(event, undefined));
    const waiting = run.open.latest(fingerprint(call.tool, call.arguments));
    if (waiting && (said.decision === 'allow' || said.decision === 'modify'))
      await calledOff(run, waiting.id, call.tool);
  }
}

/** A rule's rewrite of these applies to our own answer; the agent has nothing to rewrite. */
const APPLIED_HERE: ReadonlySet<Family> = new Set(['memory_recall', 'rate_limit', 'reasoning']);

/** The longest extra look-up of an open question after the time is up. */
const LAST_WORD_MS = 250;

/** Reasoning is decided about and not repeated: its kind and its hash stand for it. */
function unspoken({ reasoning_type = null, ...hidden }: JsonObject): JsonObject {
  return { reasoning_type, content_hash: fingerprint(hidden as Json) };
}

function familyOf(type: EventType): Family {
  return eventRow(type).answer ?? 'generic';
}

function passes({ verdict }: GateDecision): boolean {
  return verdict === 'allow' || verdict === 'modify';
}

function whyNot(cause: unknown): GateDecision {
  if (cause instanceof Misfit) return failed(`the payload cannot be read: ${cause.message}`);
  const fault = asFault(cause);
  switch (fault.kind) {
    case 'policy_violation':
      return { verdict: 'block', reason: fault.message };
    case 'rate_limited':
      return { verdict: 'defer', reason: fault.message, retry_after_ms: Number(fault.details?.retry_after_ms ?? 1000) };
    case 'conflict':
    case 'permission_denied':
    case 'not_found':
      return failed(fault.message);
    case 'unavailable':
      return failed('decisions cannot be written down now, so nothing is let through');
    default:
      return failed('it could not be decided');
  }
}

export function openingOf(event: AhpEvent, framework: string | undefined) {
  const via = viaOf(event.metadata);
  return {
    input: { ahp: { first_event: event.event_type, session_id: event.session_id } },
    metadata: { claimed_at: event.timestamp, ...(framework && { framework }), ...(via.length > 0 && { via }) },
    ...traceOf(event),
  };
}

export function traceOf({ metadata }: AhpEvent): { trace_id?: string } {
  return typeof metadata?.trace_id === 'string' ? { trace_id: metadata.trace_id } : {};
}

/** Members of the event that have no canonical place. */
export function extOf({ timestamp, context, metadata }: AhpEvent, requestId?: string): JsonObject {
  return {
    ahp: {
      timestamp,
      ...(requestId !== undefined && { request_id: requestId }),
      ...(context && { context }),
      ...(metadata && { metadata }),
    },
  };
}

export function says(role: 'user' | 'assistant', text: string): JsonObject {
  return { message: { role, parts: [{ type: 'text', text, visibility: 'public' }] } };
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
