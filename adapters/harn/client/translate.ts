/**
 * The pure middle of the backend: a remote's events about its task as canonical facts. States only what the remote said: tool
 * calls were observed, unknown words stay unknown, and events that only a bridge may write are left to ours.
 */

import type { End, Fact, Json, JsonObject, Message, Task } from '../../../src/index.ts';
import { asText, eventKind, isObject } from '../../../src/index.ts';
import { type RemoteDecision, toRemoteDecision } from '../../../src/transport/outbound/remote-decisions.ts';
import { readUpdate, type SessionUpdate } from './session-updates.ts';
import type { RemoteEvent } from './watch.ts';

export interface RemoteTask {
  readonly id: string;
  readonly status: string;
  readonly session_id?: string | null;
  readonly receipt_id?: string | null;
  readonly outcome_id?: string | null;
  readonly failure?: { readonly code?: string; readonly message?: string; readonly details?: JsonObject } | null;
  readonly metadata?: JsonObject;
}

export type RemoteArtifact = {
  readonly id: string;
  readonly kind?: string;
  readonly mime_type?: string;
  readonly uri?: string | null;
  readonly visibility?: string;
  readonly sha256?: string | null;
  readonly metadata?: JsonObject;
};

/** What the backend has to do about an event. */
export type Instruction =
  | { readonly do: 'emit'; readonly fact: Fact }
  | { readonly do: 'keep'; readonly artifact: RemoteArtifact }
  /** The task put this question. */
  | { readonly do: 'ask'; readonly request: JsonObject }
  /** It decided on a call, or its approvers did. */
  | { readonly do: 'ruled'; readonly decision: RemoteDecision }
  /** One of its questions was decided there, or withdrawn. */
  | { readonly do: 'close'; readonly requestId: string }
  /** It reports that it waits or has ended: the task itself has to be read. */
  | { readonly do: 'look' };

export interface UpdateReader {
  read(event: RemoteEvent): readonly Instruction[];
  /** Events that were held back and can wait no longer. A message in pieces continues after a pause. */
  rest(): readonly Instruction[];
  /** No more events follow. */
  end(): readonly Instruction[];
  /** The bridge itself records the request of a call it is asked about. */
  askedAbout(callId: string): void;
  /** Sets our id for an artifact of the remote, once there is one. */
  name(remoteId: string, ourId: string): void;
}

/** Events that may follow a request at once; until then it is open whether the bridge or this reader records the request. */
const BEFORE_QUESTION =
  /^(vendor\.tollbridge\.(decided|ask_opened)|tool\.approval_required|task\.(auth|input)_required|permission\.requested)$/;
/** Events that are recorded unchanged: nothing in them has to be renamed. */
const PLAIN =
  /^(agent\.(reasoning_summary|tool_use|tool_result|mcp_tool_use|memory_read|memory_write)|span\.\w+|vendor\.tollbridge\.(plan|usage|side_effect|checkpoint|note))$/;
const FOREIGN_VENDOR = /^vendor\.(?!tollbridge\.)/;

export function createUpdateReader(task: Pick<Task, 'id'>): UpdateReader {
  const held = new Map<string, Fact>();
  const artifacts = new Map<string, string>();
  const open = { id: '', text: '', count: 0 };

  const emit = (event: string, payload: JsonObject, from?: RemoteEvent): Instruction => ({
    do: 'emit',
    fact: {
      event: eventKind(event),
      payload,
      ...(from?.span_id && { span_id: from.span_id }),
      ...(from?.trace_id && { trace_id: from.trace_id }),
      ...(from?.id && { ext: { harn: { event_id: from.id } } }),
    },
  });

  function release(): Instruction[] {
    const instructions = [...held.values()].map((fact): Instruction => ({ do: 'emit', fact }));
    held.clear();
    return instructions;
  }

  /** The message that came in pieces ends when something else begins. */
  function closed(): Instruction[] {
    if (open.text === '') return [];
    const { id, text } = open;
    open.text = '';
    return [emit('agent.message', { message: toMessage(id, [{ type: 'text', text, visibility: 'public' }]) })];
  }

  function piece(text: string): Instruction[] {
    if (open.text === '') {
      open.count += 1;
      open.id = nameIn(task.id, `piece${open.count}`);
    }
    open.text += text;
    return [emit('vendor.tollbridge.message_delta', { message_id: open.id, role: 'assistant', text })];
  }

  function message(event: RemoteEvent, original: Partial<Message> | undefined): Instruction[] {
    if (!original || !Array.isArray(original.parts) || original.role === 'user' || original.role === 'system')
      return [];
    const parts = original.parts
      .filter((part) => !isWithheld((part as { visibility?: string }).visibility))
      .map((part) => renamed(part as JsonObject, artifacts));
    open.count += 1;
    const id = nameIn(task.id, original.id ?? event.id ?? `message${open.count}`);
    return [emit('agent.message', { message: toMessage(id, parts, original.role) }, event)];
  }

  /** Raw updates of an agent the remote only relays. */
  function update(event: RemoteEvent, change: SessionUpdate): Instruction[] {
    switch (change.kind) {
      case 'text':
        return piece(change.text);
      case 'requested':
        held.set(change.id, request(event, change));
        return closed();
      case 'ended':
        return [...closed(), ...release(), emit(change.ok ? 'tool.completed' : 'tool.failed', ended(change), event)];
      case 'plan':
        return [...closed(), emit('vendor.tollbridge.plan', { entries: change.entries }, event)];
      case 'other':
        return [];
    }
  }

  function request(event: RemoteEvent, call: RequestedCall): Fact {
    const { fact } = emit('tool.requested', toRequested(call), event) as Extract<Instruction, { do: 'emit' }>;
    return fact;
  }

  function read(event: RemoteEvent): readonly Instruction[] {
    const { payload } = event;
    switch (event.event) {
      case 'session.update': {
        const change = readUpdate(payload);
        return change ? update(event, change) : [];
      }
      case 'agent.message':
        return [...closed(), ...message(event, payload.message as Partial<Message> | undefined)];
      case 'message.created':
        return [...closed(), ...message(event, (payload.message ?? payload) as Partial<Message>)];
      case 'vendor.tollbridge.message_delta': {
        const message_id = nameIn(task.id, asText(payload.message_id ?? 'message'));
        return [emit(event.event, { ...payload, message_id }, event)];
      }
      case 'tool.requested':
        held.set(asText(payload.tool_call_id), request(event, { ...payload, id: asText(payload.tool_call_id) }));
        return closed();
      case 'tool.approved':
      case 'tool.denied': {
        const decision = toRemoteDecision(event.event, payload, event.created_at);
        return decision ? [...closed(), { do: 'ruled', decision }] : closed();
      }
      case 'vendor.tollbridge.decided': {
        const decision = allowedIn(event);
        return decision ? [{ do: 'ruled', decision }] : [];
      }
      case 'vendor.tollbridge.ask_closed':
        return typeof payload.ask_id === 'string' ? [{ do: 'close', requestId: payload.ask_id }] : [];
      case 'agent.handoff':
        return [emit(event.event, handoffOf(payload), event)];
      case 'tool.completed':
      case 'tool.failed':
        return [...closed(), emit(event.event, payload, event)];
      case 'artifact.created':
      case 'artifact.updated': {
        const artifact = (payload.artifact ?? payload) as RemoteArtifact;
        return typeof artifact.id === 'string' ? [{ do: 'keep', artifact }] : [];
      }
      case 'permission.requested':
        return [...closed(), { do: 'ask', request: (payload.permission_request ?? payload) as JsonObject }];
      case 'task.input_required':
      case 'task.auth_required':
      case 'task.completed':
      case 'task.failed':
      case 'task.canceled':
        return [...closed(), { do: 'look' }];
      default:
        return PLAIN.test(event.event) || FOREIGN_VENDOR.test(event.event) ? [emit(event.event, payload, event)] : [];
    }
  }

  return {
    read(event) {
      const before = BEFORE_QUESTION.test(event.event) && !allowedIn(event) ? [] : release();
      return [...before, ...read(event)];
    },
    rest: release,
    end: () => [...closed(), ...release()],
    askedAbout: (callId) => {
      held.delete(callId);
    },
    name: (remoteId, ourId) => {
      artifacts.set(remoteId, ourId);
    },
  };
}

/** A call that a rule of the remote allowed unchanged; every other decision is followed by an event of its own. */
function allowedIn({ event, payload, created_at }: RemoteEvent): RemoteDecision | undefined {
  if (event !== 'vendor.tollbridge.decided') return undefined;
  const { action, decision } = payload as { action?: JsonObject; decision?: JsonObject };
  if (decision?.verdict !== 'allow' || typeof action?.tool_call_id !== 'string') return undefined;
  const { reason, rule_id, engine: by } = decision;
  const said = { tool_call_id: action.tool_call_id, name: action.tool ?? action.kind, reason, rule_id, by };
  const details = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) as JsonObject;
  return toRemoteDecision('tool.approved', details, created_at);
}

/** An id in our task, derived so that the same remote object always gets the same one. */
function nameIn(taskId: string, remoteId: string): string {
  return `${taskId}.${remoteId.replace(/[^A-Za-z0-9_.-]/g, '_')}`.slice(0, 200);
}

function toMessage(id: string, parts: readonly JsonObject[], role = 'assistant'): JsonObject {
  return { id, object: 'message', role, parts, metadata: {} };
}

/** Files have our ids here; a file that never arrived is replaced by a text. */
function renamed(part: JsonObject, artifacts: ReadonlyMap<string, string>): JsonObject {
  const { artifact_id, ...rest } = part;
  if (typeof artifact_id !== 'string') return part;
  const ours = artifacts.get(artifact_id);
  if (ours) return { ...rest, artifact_id: ours };
  return { type: 'text', text: `[file ${artifact_id} stayed with the remote]`, visibility: 'public' };
}

/** A handoff of the remote. The receipts it links to are stated in the remote's own receipt. */
function handoffOf({ link: _link, ...payload }: JsonObject): JsonObject {
  return payload;
}

interface RequestedCall {
  readonly id: string;
  readonly name?: Json | undefined;
  readonly kind?: Json | undefined;
  readonly input?: Json | undefined;
  readonly server?: Json | undefined;
  readonly target?: Json | undefined;
  readonly effect?: Json | undefined;
}

function toRequested({ id, name, kind, input, server, target, effect }: RequestedCall): JsonObject {
  return {
    tool_call_id: id,
    name: typeof name === 'string' && name !== '' ? name : 'unknown',
    kind: typeof kind === 'string' ? kind : 'tool',
    input: isObject(input) ? input : {},
    effect: typeof effect === 'string' ? effect : 'unknown',
    evidence: 'observed',
    ...(typeof server === 'string' && { server }),
    ...(typeof target === 'string' && { target }),
  };
}

function ended({ id, name, output, error, ok }: Extract<SessionUpdate, { kind: 'ended' }>): JsonObject {
  return {
    tool_call_id: id,
    name: name ?? 'unknown',
    status: ok ? 'ok' : 'error',
    output: output ?? null,
    ...(error && { error }),
  };
}

/** Only the three known final states are final. Undefined: the task continues, or its state is unknown to us. */
export function toCoreEnd(task: RemoteTask, summary?: string, metrics?: JsonObject): End | undefined {
  const more = { ...(summary && { summary }), ...(metrics && { metrics }) };
  switch (task.status) {
    case 'COMPLETED':
      return { state: 'COMPLETED', ...more };
    case 'CANCELED':
      return { state: 'CANCELED', ...more };
    case 'FAILED': {
      // The failure is foreign data: a member of the wrong type counts as absent.
      const { code, message, details } = (isObject(task.failure) ? task.failure : {}) as JsonObject;
      const failure = {
        code: typeof code === 'string' && code ? code : 'remote_failed',
        message: typeof message === 'string' && message ? message : 'the remote did not say why it failed',
        ...(isObject(details) && { details }),
      };
      return { state: 'FAILED', failure, ...more };
    }
    default:
      return undefined;
  }
}

const RUNNING = new Set(['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED']);
const WAITING = new Set(['INPUT_REQUIRED', 'AUTH_REQUIRED']);

export function isKnownState(status: string): boolean {
  return RUNNING.has(status) || status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELED';
}

export function isWaiting(status: string): boolean {
  return WAITING.has(status);
}

/** For receipts only; also true for an unknown visibility. */
export function isWithheld(visibility: string | undefined): boolean {
  return visibility !== undefined && visibility !== 'public' && visibility !== 'internal';
}

/** The input for the remote: ours without our ids, and without parts that are for receipts only. */
export function toWireInput(input: JsonObject): JsonObject {
  const { role, parts, metadata } = input;
  if (typeof role !== 'string' || !Array.isArray(parts)) return input;
  const texts = (parts as JsonObject[])
    .filter(({ visibility }) => visibility !== 'receipt_only')
    .map((part) => renamed(part, new Map()));
  return { role, parts: texts, ...(isFilled(metadata) && { metadata }) };
}

function isFilled(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}
