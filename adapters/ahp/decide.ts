/**
 * The events an agent waits on, each put to the gate as the act it is and answered in its family's words. Nothing here
 * says yes by itself: what cannot be read, decided or written down is refused.
 */

import { type EventType, eventRow, type Family } from '../../mappings/ahp.ts';
import {
  type Actor,
  asFault,
  asText,
  type Bridge,
  type Deps,
  type Fact,
  type Json,
  type JsonObject,
  type ProposedAction,
} from '../../src/index.ts';
import { type AhpSettings, honouredBy } from './config.ts';
import { Misfit } from './decode.ts';
import { type Remembered, recall, type Wanted } from './memory.ts';
import { notSeen } from './open-calls.ts';
import { inTime } from './patience.ts';
import { waitForQuota } from './quotas.ts';
import type { Patience, Question, Rulings } from './rulings.ts';
import type { Run, Runs } from './runs.ts';
import { readPayload } from './tolerant.ts';
import {
  type AhpEvent,
  asHonoured,
  attributesOf,
  besideArguments,
  failed,
  fingerprint,
  intentOf,
  promptOf,
  type Ruled,
  readCall,
  rewriteCall,
  rewritePrompt,
  toCoreAction,
  toWireGeneric,
  toWireRefusal,
  viaOf,
} from './translate.ts';

export interface Asker {
  readonly actor: Actor;
  readonly patience: Patience;
  readonly framework?: string;
  readonly request_id?: string;
}

export interface Decider {
  /** Always an answer of the event's family, and always before the patience is over. */
  decide(event: AhpEvent, asker: Asker): Promise<JsonObject>;
}

export interface DeciderDeps {
  readonly bridge: Bridge;
  readonly runs: Runs;
  readonly rulings: Rulings;
  readonly settings: AhpSettings;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

export function createDecider({ bridge, runs, rulings, settings, deps }: DeciderDeps): Decider {
  async function ruleOn(event: AhpEvent, asker: Asker, question: Omit<Question, 'ext'>) {
    const run = await runs.caughtUp(asker.actor, event, () => openingOf(event, asker.framework));
    const answered = await rulings.ask(
      asker.actor,
      run,
      { ...question, ext: extOf(event, asker.request_id), ...traceOf(event) },
      asker.patience,
    );
    return { run, ...answered };
  }

  async function preAction(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    const call = readCall(event.payload);
    const print = fingerprint(call.tool, call.arguments);
    const action = toCoreAction(event, call, settings.effects);
    const honoured = honouredBy(settings, asker.framework);
    const beside = besideArguments(event.payload, call);
    // There is no telling which of the two a rewrite would have to reach.
    const takesArguments = honoured.has('modify') && !beside;
    const asked = beside ? fingerprint(call.tool, call.arguments, beside) : print;
    const { run, ruled, call_id } = await ruleOn(event, asker, { action, takesArguments, fingerprint: asked });
    const said = toWireGeneric(asHonoured(ruled, honoured), rewriteCall(event.payload, call));
    if (!call_id) return said;
    const now = Date.parse(deps.clock.now());
    const known = { id: call_id, tool: call.tool };
    if (said.decision !== 'allow' && said.decision !== 'modify') {
      run.refused.add(print, known, now);
      run.refused.giveUp(now);
      if (ruled.verdict === 'modify') await calledOff(run, call_id, call.tool);
      return said;
    }
    run.open.add(ruled.arguments ? fingerprint(call.tool, ruled.arguments) : print, known, now);
    giveUp(run, now);
    return said;
  }

  /** Nobody waits for this: what is not written down now is closed with the task. */
  function giveUp(run: Run, now: number): void {
    const unseen = run.open.giveUp(now);
    if (unseen.length === 0) return;
    run.unseen += unseen.length;
    runs
      .inOrder(run.actor, run, () => report(run, unseen.map(notSeen)))
      .catch((cause) => deps.log.warn({ err: cause, task: run.taskId }, 'calls without an outcome stay open'));
  }

  /** Cleared in the log, refused on the wire: the log has to hear how it really went. */
  async function calledOff(run: Run, callId: string | undefined, tool: string): Promise<void> {
    if (!callId) return;
    run.open.drop(callId);
    const payload = {
      tool_call_id: callId,
      name: tool,
      status: 'error',
      error: 'the agent was told no',
      code: 'called_off',
    };
    await report(run, [{ event: 'tool.failed', payload }]);
  }

  async function prePrompt(event: AhpEvent, asker: Asker): Promise<JsonObject> {
    const prompt = promptOf(event.payload);
    const given = prompt ? { prompt: prompt.text } : ((event.payload ?? {}) as JsonObject);
    const args = typeof given === 'object' && !Array.isArray(given) ? given : { prompt: given };
    const action = { ...toAction(event, args), tool: 'prompt' };
    const honoured = honouredBy(settings, asker.framework);
    const { run, ruled: decided } = await ruleOn(event, asker, { action, takesArguments: honoured.has('modify') });
    const ruled = asHonoured(decided, honoured);
    if (ruled.verdict === 'allow' || ruled.verdict === 'modify') {
      const text = (ruled.arguments?.prompt ?? prompt?.text) as Json | undefined;
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
    return toWireGeneric(ruled, rewritePrompt(event.payload));
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

  /** Memories that may be handed out, and the note that they were. */
  async function remember(run: Run, query: string, wanted: Wanted): Promise<Remembered> {
    const found = await recall(bridge, run.actor, { ...wanted, query, now: deps.clock.now() });
    const payload = { query, memory_ids: found.map(({ id }) => id), count: found.length };
    await report(run, [{ event: 'agent.memory_read', payload }]);
    return found;
  }

  const families: Record<Exclude<Family, 'generic'>, (event: AhpEvent, asker: Asker) => Promise<JsonObject>> = {
    async idle(event, asker) {
      const { ruled } = await typed('idle', event, asker);
      return passes(ruled) ? { decision: 'allow' } : toWireRefusal('idle', ruled);
    },

    async intent_detection(event, asker) {
      const { ruled, payload } = await typed('intent_detection', event, asker);
      if (ruled.verdict !== 'allow') return toWireRefusal('intent_detection', ruled);
      const intent = intentOf(asText(payload.prompt));
      if (!intent) return { decision: 'block', reason: 'use local detection' };
      return { decision: 'allow', detected_intent: intent, confidence: 0.6 };
    },

    async context_perception(event, asker) {
      const { ruled, payload, run } = await typed('context_perception', event, asker);
      if (ruled.verdict === 'modify') {
        const hints = ruled.arguments?.scope_hints;
        return {
          decision: 'refine',
          refined_intent: null,
          refined_target: null,
          scope_hints: Array.isArray(hints) ? hints.map(String) : [ruled.reason],
        };
      }
      if (ruled.verdict !== 'allow') return toWireRefusal('context_perception', ruled);
      const { context, target, constraints } = payload as { [key: string]: JsonObject };
      const query = [context?.query, context?.current_task, ...wordsIn(target)].filter((word) => word).join(' ');
      const limit = typeof constraints?.max_results === 'number' ? constraints.max_results : 10;
      const facts = await remember(run, query, { limit });
      return { decision: 'allow', injected_context: { facts: facts.map(({ fact }) => fact) } };
    },

    async memory_recall(event, asker) {
      const { ruled, payload, run } = await typed('memory_recall', event, asker);
      if (!passes(ruled)) return toWireRefusal('memory_recall', ruled);
      const asked = { ...payload, ...ruled.arguments };
      const limit = Math.min(Number(asked.max_results) || 0, Number(payload.max_results));
      const facts = await remember(run, asText(asked.query), { limit, type: asText(asked.memory_type) });
      return { decision: 'allow', injected_facts: facts.map(({ fact }) => fact) };
    },

    async planning(event, asker) {
      const { ruled, payload, run } = await typed('planning', event, asker);
      if (ruled.verdict === 'modify') {
        const task = ruled.arguments?.task_description;
        if (typeof task !== 'string') return toWireRefusal('planning', { ...ruled, verdict: 'block' });
        return { decision: 'modify', modified_task: task, hints: [ruled.reason] };
      }
      if (ruled.verdict !== 'allow') return toWireRefusal('planning', ruled);
      const [first = 'none'] = payload.available_strategies as readonly Json[];
      const summary = { strategy: first, task: payload.task_description as Json };
      await report(run, [{ event: 'agent.reasoning_summary', payload: summary }]);
      return { decision: 'allow', selected_strategy: first };
    },

    async reasoning(event, asker) {
      const { ruled, payload, run } = await typed('reasoning', event, asker);
      const summary = { reasoning_type: payload.reasoning_type as Json, verdict: ruled.verdict };
      await report(run, [{ event: 'agent.reasoning_summary', payload: summary }]);
      if (!passes(ruled)) return toWireRefusal('reasoning', ruled);
      return ruled.verdict === 'modify' ? { decision: 'allow', hints: [ruled.reason] } : { decision: 'allow' };
    },

    async rate_limit(event, asker) {
      const { ruled, payload, run } = await typed('rate_limit', event, asker);
      const own = Number(payload.retry_after_ms);
      if (!passes(ruled)) return toWireRefusal('rate_limit', ruled);
      const quota = await waitForQuota(bridge, run, payload.limit_type as Json, deps.clock.now());
      const said = quota ?? { verdict: 'allow', reason: '', retry_after_ms: own };
      const retry = Math.max(own, said.retry_after_ms ?? own, Number(ruled.arguments?.retry_after_ms ?? 0) || 0);
      const limits = { limit_type: payload.limit_type as Json, retry_after_ms: retry, verdict: said.verdict };
      await report(run, [{ event: 'span.updated', payload: limits }]);
      return toWireRefusal('rate_limit', { ...said, retry_after_ms: retry } as Ruled);
    },

    async confirmation(event, asker) {
      const { ruled } = await typed('confirmation', event, asker);
      return ruled.verdict === 'allow' ? { decision: 'approve' } : toWireRefusal('confirmation', ruled);
    },
  };

  /** A typed event: its payload, read strictly or mended, and what the gate says to it. */
  async function typed(type: Exclude<Family, 'generic'>, event: AhpEvent, asker: Asker) {
    const { value: payload, mended } = readPayload(type, event.payload, event);
    if (mended) deps.log.info({ event: type, agent: event.agent_id, mended }, 'a payload was read with mending');
    const { session_id: _, ...given } = payload;
    const args = type === 'reasoning' ? unspoken(given) : given;
    const named = type === 'confirmation' ? { tool: `confirmation:${wordOf(payload.confirmation_type)}` } : {};
    const action = { ...toAction(event, args), ...named };
    const held = type === 'confirmation' ? asker : { ...asker, patience: { ...asker.patience, hold: false } };
    const honoured = honouredBy(settings, asker.framework);
    const takesArguments = APPLIED_HERE.has(type) || honoured.has('modify');
    const answered = await ruleOn(event, held, { action, takesArguments });
    // The words of these two say when to come back and nothing else, so there is nothing in them to disobey.
    const ruled = type === 'idle' || type === 'rate_limit' ? answered.ruled : asHonoured(answered.ruled, honoured);
    return { payload, ...answered, ruled };
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
      const first = await inTime(answered, asker.patience.until, LAST_WORD_MS);
      if (first !== 'late') return first;
      answered
        .then((said) => tooLate(event, asker, said))
        .catch((cause) => deps.log.error({ err: cause }, 'what came of a late decision could not be written down'));
      return toWireRefusal(family, failed('it was not decided in time'));
    },
  };

  /** The agent heard no; if the log now says yes, it must not look as if something may have run. */
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

/** What a rule rewrites in these is applied to our own answer; the agent has nothing to rewrite. */
const APPLIED_HERE: ReadonlySet<Family> = new Set(['memory_recall', 'rate_limit', 'reasoning']);

/** Looking up an open question once more takes no longer than this after the time is up. */
const LAST_WORD_MS = 250;

/** What goes on in an agent's head is decided about and not repeated: its kind and its hash stand for it. */
function unspoken({ reasoning_type = null, ...hidden }: JsonObject): JsonObject {
  return { reasoning_type, content_hash: fingerprint(hidden as Json) };
}

function familyOf(type: EventType): Family {
  return eventRow(type).answer ?? 'generic';
}

function passes({ verdict }: Ruled): boolean {
  return verdict === 'allow' || verdict === 'modify';
}

function whyNot(cause: unknown): Ruled {
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

/** What the wire said beside the point. */
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
