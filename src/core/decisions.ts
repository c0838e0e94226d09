/**
 * What was asked and what was said, read back from the log: enough to put the same questions to other rules. Nothing is
 * guessed. What the record does not hold is marked as redacted, so that whoever depends on it knows that it does not know.
 */

import type { Action, Decision } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { CoreEvent, Cursor } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { DecidedPayload } from '../model/payloads.ts';
import type { Persona, Workspace } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { EventRange, Row, Store } from '../ports.ts';

export interface RecordedDecision {
  readonly event_id: Cursor;
  /** As the policy saw it, with the persona as it was then. Quotas and scopes are not on record. */
  readonly action: Action;
  readonly decision: Decision;
}

type Reading = Pick<Store, 'read' | 'get' | 'blob'>;

/** Rulings in the order of the log; `limit` counts rulings. Left out: what replays repeat, and what no rule decided. */
export async function* recordedDecisions(
  store: Reading,
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
    const { action, decision } = event.payload as unknown as DecidedPayload;
    if (!action || !decision || !fromRules(decision)) continue;
    const about = asKnown(action as unknown as Json) as unknown as DecidedPayload['action'];
    if (left-- <= 0) return;
    const { persona_id, tier, actor, arguments: given, ...rest } = about;
    const persona = persona_id ? await personaOf(persona_id, event) : undefined;
    const root = event.workspace_id ? await rootOf(event.workspace_id) : undefined;
    const args = about.tool_call_id ? await inputOf.find(event, about.tool_call_id) : await whole(store, given ?? {});
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
      decision: await asSaid(store, decision),
    };
  }
}

/** Whoever reads it knows the value is not there; anything that looks inside it finds only this. */
const UNRECORDED = '[redacted: not on record]';
const MISSING = UNRECORDED as unknown as JsonObject;

/** The bridge's own refusals, the quotas' and those of an engine that fell over say nothing about the rules. */
function fromRules({ engine, code = '' }: Decision): boolean {
  return engine !== 'bridge' && engine !== 'quota' && !['policy_timed_out', 'policy_failed'].includes(code);
}

/** The rules' own word: that its asker could not take other arguments was not theirs to decide. */
async function asSaid(store: Reading, decision: Decision): Promise<Decision> {
  const { code, arguments: args, ...rest } = decision;
  const said = { ...rest, ...(code && { code }), ...(args && { arguments: await whole(store, args) }) };
  if (code !== 'cannot_modify') return said;
  const { code: _, ...meant } = said;
  return { ...meant, verdict: decision.ask ? 'escalate' : 'modify' };
}

/** The arguments of calls, which stand in the request and not in the ruling. */
function createInputs(store: Reading) {
  const known = new Map<string, JsonObject>();
  const keyOf = (taskId: string | null | undefined, callId: unknown) => `${taskId}\n${asText(callId)}`;
  const inputIn = ({ payload }: CoreEvent) => (payload.input ?? {}) as JsonObject;
  return {
    note(event: CoreEvent): void {
      const key = keyOf(event.task_id, event.payload.tool_call_id);
      known.delete(key); // the newest last, so that the oldest is let go first
      known.set(key, inputIn(event));
      if (known.size > REMEMBERED) known.delete(known.keys().next().value as string);
    },
    async find(ruling: CoreEvent, callId: string): Promise<JsonObject> {
      const key = keyOf(ruling.task_id, callId);
      const noted = known.get(key) ?? (await lookBack(ruling, callId));
      return noted ? await whole(store, noted) : MISSING;
    },
  };

  /** A range may begin between a request and a later ruling on it. */
  async function lookBack(ruling: CoreEvent, callId: string): Promise<JsonObject | undefined> {
    if (!ruling.task_id) return undefined;
    let found: JsonObject | undefined;
    try {
      const stream = { of: 'task', id: ruling.task_id } as const;
      for await (const event of store.read({ stream, upTo: ruling.id, kinds: ['tool.requested'] })) {
        if (event.payload.tool_call_id === callId) found = inputIn(event);
      }
    } catch (cause) {
      if (!(cause instanceof Fault && cause.kind === 'cursor_expired')) throw cause;
    }
    return found;
  }
}
const REMEMBERED = 10_000;

/** Directories of workspaces, as they are now: they do not move. */
function createRoots(store: Reading) {
  const roots = new Map<string, string | undefined>();
  return async (id: string): Promise<string | undefined> => {
    if (!roots.has(id)) roots.set(id, (await store.get<Workspace & Row>('workspace', id))?.root);
    return roots.get(id);
  };
}

/** Personas as they were when something was decided about them. */
function createPersonas(store: Reading) {
  const histories = new Map<string, Promise<readonly { readonly at: Cursor; readonly persona: Persona }[]>>();

  async function historyOf(id: string) {
    const changes: { at: Cursor; persona: Persona }[] = [];
    const kinds = ['vendor.tollbridge.resource_created', 'vendor.tollbridge.resource_updated'];
    try {
      for await (const event of store.read({ stream: { of: 'resource', object: 'persona', id }, kinds })) {
        changes.push({ at: event.id, persona: event.payload.resource as unknown as Persona });
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
    // Its history is no longer kept; what stands now counts only if it stood then.
    const now = await store.get<Persona & Row>('persona', id);
    return now && now.updated_at <= event.created_at ? now : undefined;
  };
}

/** Arguments as far as they are known. What was too long to stand in its event is fetched; a marker when it is gone. */
async function whole(store: Reading, value: JsonObject): Promise<JsonObject> {
  if (value.type !== 'artifact_ref' || typeof value.sha256 !== 'string') return asKnown(value) as JsonObject;
  const bytes = await store.blob(value.sha256);
  return bytes ? (asKnown(JSON.parse(Buffer.from(bytes).toString('utf8'))) as JsonObject) : MISSING;
}

/** A text that lost a part of itself is no longer the text the rules saw: all of it is marked. */
function asKnown(value: Json | undefined): Json {
  if (typeof value === 'string') return value.includes('[redacted: ') ? UNRECORDED : value;
  if (typeof value !== 'object' || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map(asKnown);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, asKnown(member)]));
}
