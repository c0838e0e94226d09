/** What travels on a socket. One JSON object per text frame; each command is the twin of a REST operation. */

import type { OperationId } from '../../mappings/harn.ts';
import {
  check,
  Fault,
  Id,
  type JsonObject,
  NonEmpty,
  OpenObject,
  type Static,
  type TProperties,
  Type,
} from '../../src/index.ts';
import { parseJson } from '../../src/wire/body.ts';
import type { HostedTool } from './hosts.ts';

const Optional = Type.Optional;
const Frame = <P extends TProperties>(properties: P) => Type.Object({ type: NonEmpty, ...properties });

/** What a frame adds to the body of its operation; the body itself is checked as REST checks it. */
const Command = Frame({
  id: NonEmpty,
  session_id: Optional(Id),
  task_id: Optional(Id),
  request_id: Optional(Id),
  idempotency_key: Optional(NonEmpty),
});
type Command = Static<typeof Command>;

/** Command, operation, and the id in its path. */
export const COMMANDS_BY_TYPE: Readonly<
  Record<string, { readonly operation: OperationId; readonly of: 'session_id' | 'task_id' | 'request_id' }>
> = {
  'message.append': { operation: 'appendSessionMessage', of: 'session_id' },
  'task.submit': { operation: 'submitSessionTask', of: 'session_id' },
  'task.cancel': { operation: 'cancelTask', of: 'task_id' },
  'task.message': { operation: 'appendTaskMessage', of: 'task_id' },
  'session.truncate': { operation: 'truncateSession', of: 'session_id' },
  response: { operation: 'respondPermissionRequest', of: 'request_id' },
};

const Resume = Frame({ last_event_id: Id });

/** The whole of what this end of the connection runs; another offer replaces it. */
const Offer = Frame({
  id: NonEmpty,
  tools: Type.Array(
    Type.Object({
      name: Type.Unsafe<string>({ type: 'string', pattern: '^[A-Za-z0-9_.:/-]{1,128}$' }),
      description: Optional(Type.String({ maxLength: 10_000 })),
      input_schema: Optional(OpenObject),
      annotations: Optional(OpenObject),
    }),
    { maxItems: 128 },
  ),
});

export type Incoming =
  | { readonly type: 'ping'; readonly t: unknown }
  | { readonly type: 'nothing' }
  | { readonly type: 'resume'; readonly cursor: string }
  | { readonly type: 'offer'; readonly id: string; readonly tools: readonly HostedTool[] }
  | {
      readonly type: 'command';
      readonly id: string;
      readonly operation: OperationId;
      readonly params: Readonly<Record<string, string>>;
      readonly body: JsonObject;
      readonly key: string | undefined;
    };

/** The id a frame goes by, if it can be read at all: an error frame should name it. */
export function idOf(frame: unknown): string | undefined {
  const id = (frame as { id?: unknown } | null)?.id;
  return typeof id === 'string' && id.length <= 255 ? id : undefined;
}

export function readFrame(text: string): JsonObject {
  const frame = parseJson(Buffer.from(text));
  if (typeof frame !== 'object' || frame === null || Array.isArray(frame)) {
    throw new Fault('invalid_request', 'a frame is a JSON object');
  }
  return frame as JsonObject;
}

/** Where a frame does not say which session or task it means, it means the one the socket was opened on. */
export function toIncoming(
  frame: JsonObject,
  here: { readonly session_id?: string; readonly task_id?: string },
): Incoming {
  const { type } = frame;
  if (type === 'ping') return { type, t: frame.t ?? null };
  if (type === 'pong' || type === 'ack') return { type: 'nothing' };
  if (type === 'resume') return { type, cursor: check(Resume, frame, 'frame').last_event_id };
  if (type === 'tools.offer') {
    const { id, tools } = check(Offer, frame, 'frame');
    return { type: 'offer', id, tools };
  }
  const known = typeof type === 'string' && Object.hasOwn(COMMANDS_BY_TYPE, type) ? COMMANDS_BY_TYPE[type] : undefined;
  if (!known) throw new Fault('invalid_request', 'there is no frame of this type', { param: '/type' });

  const command: Command = check(Command, frame, 'frame');
  const subject = command[known.of] ?? (known.of === 'request_id' ? undefined : here[known.of]);
  if (!subject) throw new Fault('invalid_request', `the frame does not say ${known.of}`, { param: `/${known.of}` });
  const { type: _, id, session_id: _s, task_id: _t, request_id: _r, idempotency_key: key, ...body } = frame;
  return {
    type: 'command',
    id: command.id,
    operation: known.operation,
    params: { [known.of]: subject },
    body,
    key: key as string | undefined,
  };
}
