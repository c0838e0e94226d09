/**
 * Decisions read back from the log: enough to put the same acts to other rules. Nothing is guessed. Values that are not on record
 * are marked as redacted, so that a rule that depends on one is known to be undecidable.
 */

import type { Action, Decision } from '../../model/actions.ts';
import type { CoreEvent, Cursor } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { DecidedPayload } from '../../model/payloads.ts';
import type { Persona, Workspace } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { Memo } from '../../model/values/memo.ts';
import type { EventRange, Row, Store } from '../../ports/index.ts';

export interface RecordedDecision {
  readonly event_id: Cursor;
  /** As policy saw it, with the persona of that time. Quotas and scopes are not on record. */
  readonly action: Action;
  readonly decision: Decision;
}

type StoreReader = Pick<Store, 'read' | 'get' | 'blob'>;

/** Decisions in log order; `limit` counts decisions. Omitted: decisions that replays repeat, and those that no rule made. */
export async function* recordedDecisions(
  store: StoreReader,
  { limit = Number.POSITIVE_INFINITY, kinds: _, ...range }: EventRange,
): AsyncGenerator<RecordedDecision, void, undefined> {
  const inputOf = createInputs(store);
  const personaOf = createPersonas(store);
  const rootOf = createRoots(store);
  let left = limit;
  for await (const event of store.read({ ...range, kinds: ['tool.requested', 'vendor.tollbridge.decided'] })) {
    if (event.replayed) continue;
    if (event.event === 'tool.requested') {
      inputOf.note(event);
      continue;
    }
    if (event.event !== 'vendor.tollbridge.decided') continue;
    const { action, decision } = event.payload;
    if (!fromRules(decision)) continue;
    const about = asKnown(action) as DecidedPayload['action'];
    if (left-- <= 0) return;
    const { persona_id, tier, actor, arguments: recordedArguments, ...rest } = about;
    const persona = persona_id ? await personaOf(persona_id, event) : undefined;
    const root = event.workspace_id ? await rootOf(event.workspace_id) : undefined;
    const input = about.tool_call_id ? inputOf.noted(event, about.tool_call_id) : (recordedArguments ?? {});
    // Nothing is awaited for values that are in the record itself, which are nearly all.
    const args =
      input && !isReference(input)
        ? (asKnown(input) as JsonObject)
        : await whole(store, input ?? (await inputOf.before(event, about.tool_call_id ?? '')));
    yield {
      event_id: event.id,
      action: {
        ...rest,
        actor: { ...actor, scopes: [] },
        workspace_id: event.workspace_id ?? '',
        ...(event.session_id && { session_id: event.session_id }),
        ...(event.task_id && { task_id: event.task_id }),
        arguments: about.kind === 'prompt' ? { input: UNRECORDED } : args,
        ...(root && { root }),
        ...(persona && { persona }),
        ...(tier && { tier }),
      } as Action,
      decision: isAsSaid(decision) ? decision : await asSaid(store, decision),
    };
  }
}

/** Marks a value that is not on record; matching inside it finds only this text. */
const UNRECORDED = '[redacted: not on record]';
/** Stands where arguments should be, and holds none of them. */
const MISSING = UNRECORDED as Json as JsonObject;

/** Refusals by the bridge, by quotas and by a failed engine say nothing about the rules. */
function fromRules({ engine, code = '' }: Decision): boolean {
  return engine !== 'bridge' && engine !== 'quota' && !['policy_timed_out', 'policy_failed'].includes(code);
}

function isAsSaid({ code, arguments: args }: Decision): boolean {
  return code !== 'cannot_modify' && args === undefined;
}

/** The decision of the rules themselves: that the asker could not accept rewritten arguments was not theirs. */
async function asSaid(store: StoreReader, decision: Decision): Promise<Decision> {
  const { code, arguments: args, ...rest } = decision;
  const original = { ...rest, ...(code && { code }), ...(args && { arguments: await whole(store, args) }) };
  if (code !== 'cannot_modify') return original;
  const { code: _, ...meant } = original;
  return { ...meant, verdict: decision.ask ? 'escalate' : 'modify' };
}

/** The arguments of calls, which are in the request and not in the decision. */
function createInputs(store: StoreReader) {
  const known = new Memo<string, JsonObject>(REMEMBERED);
  const keyOf = (taskId: string | null | undefined, callId: unknown) => `${taskId}\n${asText(callId)}`;
  const inputIn = ({ payload }: CoreEvent) => (payload.input ?? {}) as JsonObject;
  return {
    note(event: CoreEvent): void {
      known.set(keyOf(event.task_id, event.payload.tool_call_id), inputIn(event));
    },
    noted(decided: CoreEvent, callId: string): JsonObject | undefined {
      return known.get(keyOf(decided.task_id, callId));
    },
    /** A request that was made long ago, or before the range. */
    before: lookBack,
  };

  /** A range may begin between a request and a later decision on it. */
  async function lookBack(decided: CoreEvent, callId: string): Promise<JsonObject | undefined> {
    if (!decided.task_id) return undefined;
    let found: JsonObject | undefined;
    try {
      const stream = { of: 'task', id: decided.task_id } as const;
      for await (const event of store.read({ stream, upTo: decided.id, kinds: ['tool.requested'] })) {
        if (event.payload.tool_call_id === callId) found = inputIn(event);
      }
    } catch (cause) {
      if (!(cause instanceof Fault && cause.kind === 'cursor_expired')) throw cause;
    }
    return found;
  }
}
const REMEMBERED = 10_000;

/** Current directories of workspaces: they do not change. */
function createRoots(store: StoreReader) {
  const roots = new Map<string, string | undefined>();
  return async (id: string): Promise<string | undefined> => {
    if (!roots.has(id)) roots.set(id, (await store.get<Workspace & Row>('workspace', id))?.root);
    return roots.get(id);
  };
}

/** Personas as of a decision. */
function createPersonas(store: StoreReader) {
  const histories = new Map<string, Promise<readonly { readonly at: Cursor; readonly persona: Persona }[]>>();

  async function historyOf(id: string) {
    const changes: { at: Cursor; persona: Persona }[] = [];
    const kinds = ['vendor.tollbridge.resource_created', 'vendor.tollbridge.resource_updated'];
    try {
      for await (const event of store.read({ stream: { of: 'resource', object: 'persona', id }, kinds })) {
        changes.push({ at: event.id, persona: event.payload.resource as Persona });
      }
    } catch (cause) {
      if (!(cause instanceof Fault && cause.kind === 'cursor_expired')) throw cause;
    }
    return changes;
  }

  return async (id: string, event: CoreEvent): Promise<Persona | undefined> => {
    const history = histories.get(id) ?? historyOf(id);
    histories.set(id, history);
    const then = (await history).findLast(({ at }) => at < event.id)?.persona;
    if (then) return then;
    // Its history is no longer kept; the current row counts only if it is older than the decision.
    const now = await store.get<Persona & Row>('persona', id);
    return now && now.updated_at <= event.created_at ? now : undefined;
  };
}

function isReference(value: JsonObject): boolean {
  return value.type === 'artifact_ref' && typeof value.sha256 === 'string';
}

/** Arguments as far as they are known. Values stored as artifacts are fetched; a marker when they are gone. */
async function whole(store: StoreReader, value: JsonObject | undefined): Promise<JsonObject> {
  if (!value) return MISSING;
  if (!isReference(value)) return asKnown(value) as JsonObject;
  const bytes = await store.blob(value.sha256 as string);
  return bytes ? (asKnown(JSON.parse(Buffer.from(bytes).toString('utf8'))) as JsonObject) : MISSING;
}

/** A partly redacted text is no longer the text the rules saw: all of it is marked. Where nothing is, nothing is copied. */
function asKnown(value: Json | undefined): Json {
  if (typeof value === 'string') return value.includes('[redacted: ') ? UNRECORDED : value;
  if (typeof value !== 'object' || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map(asKnown);
  let differs = false;
  const members = Object.entries(value).map(([name, member]): [string, Json] => {
    const known = asKnown(member);
    differs ||= known !== member;
    return [name, known];
  });
  return differs ? Object.fromEntries(members) : value;
}
