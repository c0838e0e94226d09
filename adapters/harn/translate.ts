/**
 * The pure middle. The canonical words are this protocol's own, so little is translated: questions are called permission
 * requests, faults get their statuses, and members that only core uses are dropped.
 */

import { approvedBy, faults, permissionStatus, VERSION_HEADER } from '../../mappings/harn.ts';
import {
  type AskRecord,
  type AskState,
  asFault,
  asText,
  beginning,
  type CommandBody,
  type CoreEvent,
  Fault,
  fieldName,
  type JsonObject,
  type PendingAct,
  type Row,
  type Session,
  visibleText,
} from '../../src/index.ts';
import { VERSIONS } from './revisions/revisions.ts';
import type { WireShape } from './revisions/schemas.ts';

// ---- Faults ----

export interface WireFault {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: WireShape<'Error'>;
}

export function toWireFault(thrown: unknown, requestId: string): WireFault {
  const fault = asFault(thrown);
  const { status, code, type } = faults[fault.kind];
  const error = {
    code,
    message: beginning(fault.message, 300),
    type,
    param: fieldName(fault.param),
    request_id: requestId,
    details: fault.details ?? {},
  };
  return { status, headers: headersFor(fault), body: { error } };
}

function headersFor({ kind, details }: Fault): Record<string, string> {
  if (kind === 'unauthenticated') return { 'www-authenticate': 'Bearer' };
  if (kind === 'unsupported_version') return { upgrade: VERSIONS.join(', ') };
  if (kind === 'rate_limited' && typeof details?.retry_after_ms === 'number') {
    return { 'retry-after': asText(Math.ceil(details.retry_after_ms / 1000)) };
  }
  return {};
}

export function unsupportedVersion(version: string | undefined): Fault {
  const what = version === undefined ? 'the version header is missing' : 'this version is not supported';
  return new Fault('unsupported_version', what, {
    param: VERSION_HEADER,
    details: { supported_versions: [...VERSIONS] },
  });
}

/** JSON in ASCII: the same value, and no reader can cut a character in half. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

// ---- Lists ----

export interface WireList {
  readonly object: 'list';
  readonly data: readonly unknown[];
  readonly page: { readonly has_more: boolean; readonly next_cursor: string | null };
}

export function toWireList(data: readonly unknown[], next: string | undefined): WireList {
  return {
    object: 'list',
    data,
    page: { has_more: next !== undefined, next_cursor: next ? toWireCursor(next) : null },
  };
}

export function toWireCursor(id: string): string {
  return Buffer.from(`after ${id}`).toString('base64url');
}

export function toCoreCursor(cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString();
  const id = /^after ([A-Za-z0-9_.-]{1,200})$/.exec(text)?.[1];
  if (!id || toWireCursor(id) !== cursor) {
    throw new Fault('invalid_request', 'this is not a cursor of ours', { param: 'cursor' });
  }
  return id;
}

// ---- Resources ----

/** Where the transcript is read. */
export function toWireSession(row: Row): Row {
  const session = row as Row & Session;
  if (typeof session.transcript !== 'object') return row;
  const transcript = { ...session.transcript, href: `/v1/sessions/${session.id}/messages` };
  return { ...session, transcript } as Row;
}

/** Drops `ext`, which holds members of other protocols. */
export function toWireEvent(event: CoreEvent): Omit<CoreEvent, 'ext'> {
  if (!('ext' in event)) return event;
  const { ext: _, ...rest } = event;
  return rest;
}

/** `act`: exactly what will run, for callers that may answer; without it the act is shown as the log has it. */
export function toWirePermission(ask: AskRecord & Row, act?: PendingAct): WireShape<'PermissionRequest'> {
  const open = ask.state === 'open';
  return {
    id: ask.id,
    object: 'permission_request',
    created_at: ask.created_at,
    updated_at: ask.updated_at,
    metadata: ask.metadata,
    session_id: ask.session_id,
    task_id: ask.task_id,
    workspace_id: ask.workspace_id,
    status: permissionStatus.toWire(ask.state),
    source: 'hitl',
    action: act ? { ...ask.action, ...(act as JsonObject) } : ask.action,
    request: {
      kind: ask.kind,
      question: visibleText(ask.question),
      ...(ask.metadata.shown === 'in_part' && { shown: act ? 'whole' : 'in_part' }),
      schema: ask.schema,
      tool_call_id: ask.tool_call_id,
      rule_id: ask.rule_id,
      reason: open ? ask.reason : null,
      to: ask.to,
      expires_at: ask.expires_at,
    },
    response: open
      ? null
      : {
          state: ask.state,
          answered_by: ask.answered_by,
          answered_at: ask.answered_at,
          answer: ask.answer,
          reason: ask.reason,
          used_at: ask.used_at,
        },
    expires_at: ask.expires_at,
  };
}

/** The core states that one of the three wire words filters for. */
export function toCoreAskStates(status: string): readonly AskState[] {
  const states = permissionStatus.rows.filter(({ wire }) => wire === status).map(({ core }) => core);
  if (states.length === 0) {
    throw new Fault('invalid_request', 'status must be one of pending, approved, denied', { param: 'status' });
  }
  return states;
}

/** A claimed reviewer is recorded as a claim: the authenticated caller is the one who answered. */
export function toCoreAnswer(askId: string, body: WireShape<'PermissionResponseRequest'>): CommandBody<'ask.answer'> {
  const approved = body.approved ?? (body.outcome && approvedBy[body.outcome]);
  if (body.approved !== undefined && body.outcome && approvedBy[body.outcome] !== body.approved) {
    throw new Fault('invalid_request', 'approved and outcome contradict each other', { param: '/outcome' });
  }
  if (approved === undefined && body.answer === undefined) {
    throw new Fault('invalid_request', 'the response says neither yes nor no and gives no answer', {
      param: '/approved',
    });
  }
  const metadata = { ...body.metadata, ...(body.reviewer && { reviewer: body.reviewer }) };
  return {
    ask_id: askId,
    ...(approved !== undefined && { approved }),
    ...(body.answer !== undefined && { value: body.answer }),
    ...(body.arguments && { arguments: body.arguments }),
    ...(body.reason && { reason: body.reason }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

/** Names that announce a secret do not belong in a vault's description. */
const SECRET_NAMES = /access_token|refresh_token|client_secret|private_key/i;

export function withoutSecretNames<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutSecretNames) as T;
  if (typeof value === 'string') return (SECRET_NAMES.test(value) ? '[withheld]' : value) as T;
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !SECRET_NAMES.test(name));
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutSecretNames(member)])) as T;
}
