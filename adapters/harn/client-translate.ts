/**
 * The pure middle of the backend: what a remote tells about its task, in our words. It says only what it was told: tool
 * calls were observed, unknown words stay unknown, and what only a bridge may write is left to ours.
 */

import type { End, Fact, Json, JsonObject, Message, Task } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { readUpdate, type Update } from './client-updates.ts';
import type { RemoteEvent } from './client-watch.ts';

export interface RemoteTask {
  readonly id: string;
  readonly status: string;
  readonly session_id?: string | null;
  readonly receipt_id?: string | null;
  readonly outcome_id?: string | null;
  readonly failure?: { readonly code?: string; readonly message?: string; readonly details?: JsonObject } | null;
  readonly metadata?: JsonObject;
}

export interface RemoteArtifact {
  readonly id: string;
  readonly kind?: string;
  readonly mime_type?: string;
  readonly uri?: string | null;
  readonly visibility?: string;
  readonly sha256?: string | null;
  readonly metadata?: JsonObject;
}

/** What is to be done about an event. */
export type Deed =
  | { readonly do: 'emit'; readonly fact: Fact }
  | { readonly do: 'keep'; readonly artifact: RemoteArtifact }
  /** The task put this question. */
  | { readonly do: 'ask'; readonly request: JsonObject }
  /** It says that it waits or has ended: the task itself knows. */
  | { readonly do: 'look' };

export interface Reading {
  read(event: RemoteEvent): readonly Deed[];
  /** What was held back and can wait no longer. A message in pieces goes on after a silence. */
  rest(): readonly Deed[];
  /** Nothing more comes. */
  end(): readonly Deed[];
  /** The bridge itself writes down the request of a call it is asked about. */
  askedAbout(callId: string): void;
  /** Our name for an artifact of the remote's, once there is one. */
  name(remoteId: string, ourId: string): void;
}

/** Questions that may follow a request at once; until then it is not known who writes the request down. */
const BEFORE_QUESTION =
  /^(vendor\.tollbridge\.(decided|ask_opened)|tool\.approval_required|task\.(auth|input)_required|permission\.requested)$/;
/** Told as they are: nothing in them has to be renamed. */
const PLAIN =
  /^(agent\.(reasoning_summary|tool_use|tool_result|mcp_tool_use|handoff|memory_read|memory_write)|span\.\w+|vendor\.tollbridge\.(plan|usage|side_effect|checkpoint|note))$/;
const FOREIGN_VENDOR = /^vendor\.(?!tollbridge\.)/;

export function createReading(task: Pick<Task, 'id'>): Reading {
  const held = new Map<string, Fact>();
  const artifacts = new Map<string, string>();
  const open = { id: '', text: '', count: 0 };

  const emit = (event: string, payload: JsonObject, from?: RemoteEvent): Deed => ({
    do: 'emit',
    fact: {
      event,
      payload,
      ...(from?.span_id && { span_id: from.span_id }),
      ...(from?.trace_id && { trace_id: from.trace_id }),
      ...(from?.id && { ext: { harn: { event_id: from.id } } }),
    },
  });

  function release(): Deed[] {
    const deeds = [...held.values()].map((fact): Deed => ({ do: 'emit', fact }));
    held.clear();
    return deeds;
  }

  /** The message that came in pieces ends when something else begins. */
  function closed(): Deed[] {
    if (open.text === '') return [];
    const { id, text } = open;
    open.text = '';
    return [emit('agent.message', { message: toMessage(id, [{ type: 'text', text, visibility: 'public' }]) })];
  }

  function piece(text: string): Deed[] {
    if (open.text === '') {
      open.count += 1;
      open.id = nameIn(task.id, `piece${open.count}`);
    }
    open.text += text;
    return [emit('vendor.tollbridge.message_delta', { message_id: open.id, role: 'assistant', text })];
  }

  function message(event: RemoteEvent, given: Partial<Message> | undefined): Deed[] {
    if (!given || !Array.isArray(given.parts) || given.role === 'user' || given.role === 'system') return [];
    const parts = given.parts
      .filter((part) => (part as { visibility?: string }).visibility !== 'receipt_only')
      .map((part) => renamed(part as unknown as JsonObject, artifacts));
    open.count += 1;
    const id = nameIn(task.id, given.id ?? event.id ?? `message${open.count}`);
    return [emit('agent.message', { message: toMessage(id, parts, given.role) }, event)];
  }

  /** Raw updates of an agent the remote only relays. */
  function update(event: RemoteEvent, told: Update): Deed[] {
    switch (told.kind) {
      case 'text':
        return piece(told.text);
      case 'requested':
        held.set(told.id, request(event, told));
        return closed();
      case 'ended':
        return [...closed(), ...release(), emit(told.ok ? 'tool.completed' : 'tool.failed', ended(told), event)];
      case 'plan':
        return [...closed(), emit('vendor.tollbridge.plan', { entries: told.entries }, event)];
      case 'other':
        return [];
    }
  }

  function request(event: RemoteEvent, call: RequestedCall): Fact {
    const { fact } = emit('tool.requested', toRequested(call), event) as Extract<Deed, { do: 'emit' }>;
    return fact;
  }

  function read(event: RemoteEvent): readonly Deed[] {
    const { payload } = event;
    switch (event.event) {
      case 'session.update': {
        const told = readUpdate(payload);
        return told ? update(event, told) : [];
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
      case 'tool.completed':
      case 'tool.failed':
        return [...closed(), emit(event.event, payload, event)];
      case 'artifact.created':
      case 'artifact.updated': {
        const artifact = (payload.artifact ?? payload) as unknown as RemoteArtifact;
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
      const before = BEFORE_QUESTION.test(event.event) ? [] : release();
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

/** A name in our task that is the same each time the same thing is told. */
function nameIn(taskId: string, remoteId: string): string {
  return `${taskId}.${remoteId.replace(/[^A-Za-z0-9_.-]/g, '_')}`.slice(0, 200);
}

function toMessage(id: string, parts: readonly JsonObject[], role = 'assistant'): JsonObject {
  return { id, object: 'message', role, parts, metadata: {} };
}

/** Files are known here by our names; what never arrived is referred to in words. */
function renamed(part: JsonObject, artifacts: ReadonlyMap<string, string>): JsonObject {
  const { artifact_id, ...rest } = part;
  if (typeof artifact_id !== 'string') return part;
  const ours = artifacts.get(artifact_id);
  if (ours) return { ...rest, artifact_id: ours };
  return { type: 'text', text: `[file ${artifact_id} stayed with the remote]`, visibility: 'public' };
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
    input: typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {},
    effect: typeof effect === 'string' ? effect : 'unknown',
    evidence: 'observed',
    ...(typeof server === 'string' && { server }),
    ...(typeof target === 'string' && { target }),
  };
}

function ended({ id, name, output, error, ok }: Extract<Update, { kind: 'ended' }>): JsonObject {
  return {
    tool_call_id: id,
    name: name ?? 'unknown',
    status: ok ? 'ok' : 'error',
    output: output ?? null,
    ...(error && { error }),
  };
}

/** Only the three known ends are ends. Undefined: it goes on, or says a word we have never met. */
export function toCoreEnd(task: RemoteTask, summary?: string, metrics?: JsonObject): End | undefined {
  const more = { ...(summary && { summary }), ...(metrics && { metrics }) };
  switch (task.status) {
    case 'COMPLETED':
      return { state: 'COMPLETED', ...more };
    case 'CANCELED':
      return { state: 'CANCELED', ...more };
    case 'FAILED': {
      const { code, message, details } = task.failure ?? {};
      const failure = {
        code: code || 'remote_failed',
        message: message ?? 'the remote did not say why it failed',
        ...(details && { details }),
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

/** What the remote is given: our input without our names, and without what is for receipts only. */
export function toWireInput(input: JsonObject): JsonObject {
  const { role, parts, metadata } = input;
  if (typeof role !== 'string' || !Array.isArray(parts)) return input;
  const told = (parts as JsonObject[])
    .filter(({ visibility }) => visibility !== 'receipt_only')
    .map((part) => renamed(part, new Map()));
  return { role, parts: told, ...(isFilled(metadata) && { metadata }) };
}

function isFilled(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}
