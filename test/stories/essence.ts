/**
 * What two renditions of one story must have in common, and no more: ids are renamed in the order they turn up, and what
 * belongs to the door rather than to the story is left out. Pure.
 */
import type { CoreEvent } from '../../src/model/events.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import type { Json, JsonObject } from '../../src/model/schema.ts';
import { walk } from './frames.ts';

/** Written by doors for themselves: which wire's id stands for which of ours, calls carried without being understood. */
const DOORS_OWN = new Set(['vendor.tollbridge.bound', 'vendor.tollbridge.passthrough']);

/** Everything that happened inside the story's tasks, by what it says and who said it. */
export function essentialLog(log: readonly CoreEvent[]): Json[] {
  const rename = createRenaming();
  return log
    .filter(({ task_id, event }) => task_id && !DOORS_OWN.has(event))
    .map(({ event, task_id, actor, payload }) =>
      rename({ event, task_id: task_id as string, actor: actor ?? null, payload: essentialPayload(payload) }),
    );
}

/** Metadata is where doors keep what their wire said beside the point; the door itself is named for the record only. */
function essentialPayload({ task, action, decision, message, ...payload }: JsonObject): JsonObject {
  return {
    ...payload,
    // Keyed, and of arguments that hold a door's own words: what it covers is checked where acts are counted.
    ...(decision !== undefined && { decision: without(decision, ['arguments_digest']) }),
    ...(task !== undefined && { task: without(task, ['metadata', 'input']) }),
    ...(message !== undefined && { message: without(message, ['metadata']) }),
    ...(action !== undefined && { action: { ...without(action, ['id']), actor: actorOf(action) } }),
  };
}

function actorOf(action: Json): Json {
  const { actor } = action as JsonObject;
  return actor === undefined ? null : without(actor, ['door']);
}

/** The receipt but for its seal, and for hashes of what has ids in it: those are checked by verifying it. */
export function essentialReceipt(receipt: Receipt): Json {
  const { chain: _chain, signatures: _signatures, metadata, approvals, replay_input, ...rest } = receipt;
  const { chain: _location, ...reported } = metadata ?? {};
  return createRenaming()({
    ...(rest as unknown as JsonObject),
    metadata: reported as Json,
    approvals: (approvals ?? []).map(({ evidence_hash: _, ...approval }) => approval) as unknown as Json,
    replay_input: {
      determinism: replay_input.determinism,
      materials: replay_input.materials.map(({ kind, id, sha256 }) => ({
        kind,
        id: id ?? null,
        // Over events, which have ids and what each protocol said in them: held against the log of the rendition itself.
        sha256: kind === 'event_log' ? null : (sha256 ?? null),
      })),
    },
  });
}

/** The story with nothing but its bones: the states it went through, what was decided and by whom, and how it ended. */
export function spine(log: readonly CoreEvent[], receipts: readonly Receipt[]): string[] {
  const bones = log.flatMap(({ event, task_id, payload }) => (task_id ? bonesOf(event, payload) : []));
  return [...bones, ...receipts.flatMap(receiptBones)];
}

function bonesOf(event: string, payload: JsonObject): string[] {
  const name = String(payload.name ?? '');
  switch (event) {
    case 'task.submitted':
    case 'task.started':
    case 'task.input_required':
    case 'task.auth_required':
    case 'task.status_changed':
    case 'task.completed':
    case 'task.failed':
    case 'task.canceled':
      return [String(payload.to)];
    case 'vendor.tollbridge.decided': {
      const { action, decision } = payload as { action: JsonObject; decision: JsonObject };
      return action.tool_call_id ? [`${action.tool}: ${decision.verdict}`] : [];
    }
    case 'tool.approved':
    case 'tool.denied':
      return [`${name}: ${event.slice('tool.'.length)} by ${payload.by}${payload.reason ? `, ${payload.reason}` : ''}`];
    case 'tool.completed':
    case 'tool.failed':
      return [`${name}: ${payload.code ?? payload.status}`];
    default:
      return [];
  }
}

function receiptBones({ lifecycle, side_effects, approvals = [] }: Receipt): string[] {
  return [
    `receipt: ${lifecycle.final_state}`,
    ...side_effects.tool_calls.map(({ tool, status }) => `receipt: ${tool} ${status}`),
    ...approvals.map(({ action, decision, actor }) => `receipt: ${action} ${decision} by ${actor}`),
  ];
}

const PREFIXES =
  'workspace|session|task|branch|message|artifact|receipt|outcome|action|ask|call|instance|persona|quota|memory|evt';
/** The part after the underscore has a digit in it somewhere; that tells ids from words like `outcome_unknown`. */
const ID = new RegExp(`\\b(${PREFIXES})_(?=[A-Za-z]*\\d)[0-9A-Za-z]+`, 'g');

/** The same id gets the same new name, and ids of one kind are numbered as they turn up. */
function createRenaming(): (value: Json) => Json {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  const rename = (id: string, prefix: string): string => {
    const before = names.get(id);
    if (before) return before;
    const count = (counts.get(prefix) ?? 0) + 1;
    counts.set(prefix, count);
    names.set(id, `${prefix}_${count}`);
    return `${prefix}_${count}`;
  };
  return (value) => walk(value, (text) => text.replace(ID, rename));
}

function without(value: Json, members: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value as JsonObject).filter(([name]) => !members.includes(name)));
}
