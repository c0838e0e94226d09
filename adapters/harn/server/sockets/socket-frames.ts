/** The frames of a socket. One JSON object per text frame; each command corresponds to a REST operation. */

import { frames, type SocketRow } from '../../../../mappings/harn.ts';
import {
  check,
  Fault,
  Id,
  isObject,
  type JsonObject,
  NonEmpty,
  OpenObject,
  type Static,
  type TProperties,
  Type,
} from '../../../../src/index.ts';
import { parseJson } from '../../../../src/transport/http/body.ts';
import type { OperationId } from '../../revisions/revisions.ts';
import type { HostedTool } from './socket-tools.ts';

const Optional = Type.Optional;
const Frame = <P extends TProperties>(properties: P) => Type.Object({ type: NonEmpty, ...properties });

/** The members a frame adds to the body of its operation; the body itself is validated as in REST. */
const Command = Frame({
  id: NonEmpty,
  session_id: Optional(Id),
  task_id: Optional(Id),
  request_id: Optional(Id),
  idempotency_key: Optional(NonEmpty),
});
type Command = Static<typeof Command>;

const Resume = Frame({ last_event_id: Id });

/** All tools that this client runs; another offer replaces them. */
const OfferFrame = Frame({
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

export type IncomingFrame =
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
  if (!isObject(frame)) {
    throw new Fault('invalid_request', 'a frame is a JSON object');
  }
  return frame as JsonObject;
}

/** A frame that names no session or task means the one the socket was opened on. */
export function toIncoming(
  frame: JsonObject,
  here: { readonly session_id?: string; readonly task_id?: string },
): IncomingFrame {
  const { type } = frame;
  const judged = judge(frame);
  switch (type) {
    case 'ping':
      return { type, t: frame.t ?? null };
    case 'pong':
    case 'ack':
      return { type: 'nothing' };
    case 'resume':
      return { type, cursor: check(Resume, frame, 'frame').last_event_id };
    case 'tools.offer': {
      const { id, tools } = check(OfferFrame, frame, 'frame');
      return { type: 'offer', id, tools };
    }
  }
  const { operation, of } = judged;
  if (!operation || !of) throw new Fault('invalid_request', 'there is no frame of this type', { param: '/type' });

  const command: Command = check(Command, frame, 'frame');
  const subject = command[of] ?? (of === 'request_id' ? undefined : here[of]);
  if (!subject) throw new Fault('invalid_request', `the frame does not say ${of}`, { param: `/${of}` });
  const { type: _, id, session_id: _s, task_id: _t, request_id: _r, idempotency_key: key, ...body } = frame;
  return {
    type: 'command',
    id: command.id,
    operation,
    params: { [of]: subject },
    body,
    key: key as string | undefined,
  };
}

/** The row of this type of frame. A frame without its id, one that only we send, or one of unknown type is refused. */
function judge(frame: JsonObject): SocketRow {
  const { type } = frame;
  if (typeof type !== 'string') throw new Fault('invalid_request', 'a frame says its type', { param: '/type' });
  const judged = frames.judge('client', frame.id === undefined ? 'notification' : 'request', type);
  if (judged.handling === 'refuse') {
    const param = frames.judge('client', 'request', type).handling === 'refuse' ? '/type' : '/id';
    throw new Fault('invalid_request', judged.reason, { param });
  }
  if (!judged.row) throw new Fault('invalid_request', 'there is no frame of this type', { param: '/type' });
  return judged.row;
}
