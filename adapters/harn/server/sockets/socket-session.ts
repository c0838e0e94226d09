/**
 * One open socket: past events, marked as replayed, then live ones; open questions; and the answers to commands, in the order
 * of the commands. A client that falls behind is disconnected with the cursor to resume from.
 */
import {
  type Actor,
  type AskRecord,
  anySignal,
  asFault,
  type CoreEvent,
  type Cursor,
  Fault,
  type JsonObject,
  type Row,
  type Stream,
} from '../../../../src/index.ts';
import { CLOSE, type TextSocket } from '../../../../src/transport/websocket/websocket.ts';
import type { Revision } from '../../revisions/revisions.ts';
import { toWireEvent, toWireFault, toWirePermission } from '../../translate.ts';
import type { RouteContext } from '../call.ts';
import { holds, requireScope } from '../exchange.ts';
import type { Perform } from './socket.ts';
import { type IncomingFrame, idOf, readFrame, toIncoming } from './socket-frames.ts';
import { type Host, type ToolRegistration, toCoreResult } from './socket-tools.ts';

export interface ConversationDeps {
  readonly context: RouteContext;
  readonly perform: Perform;
  /** The revision this connection was opened in. */
  readonly revision: Revision;
  readonly actor: Actor;
  readonly bearer: string | undefined;
  readonly stream: Stream;
  /** The session the stream belongs to. */
  readonly session: string | undefined;
  readonly cursor: Cursor | undefined;
  /** Where a peer without a cursor begins, when that is not the beginning. */
  readonly begin: Cursor | 'now' | undefined;
  readonly peer: TextSocket;
  readonly requestId: string;
}

/** A client without headers names its cursor in its first frame; it gets this long before the past begins to flow. */
const FIRST_FRAME_MS = 200;
/** Commands that may wait their turn. */
const MOST_WAITING = 64;

export function converse(deps: ConversationDeps): { message(text: string): void } {
  const { context, perform, actor, stream, peer, requestId } = deps;
  const { bridge, followers, metrics } = context;
  const here = {
    ...(stream.of === 'task' && { task_id: stream.id }),
    ...(deps.session && { session_id: deps.session }),
  };
  /** Questions this peer was shown. */
  const asked = new Set<string>();
  let following: AbortController | undefined;
  let last = deps.cursor;
  let waiting = 0;
  let turn = Promise.resolve();
  let cutOff = false;

  const follower = followers.add({
    kind: 'websocket',
    bearer: deps.bearer,
    actor,
    dismiss: () => peer.close(CLOSE.unauthenticated, 'the token no longer holds'),
    drain: () => peer.close(CLOSE.drain, 'the gateway is shutting down'),
  });
  peer.signal.addEventListener('abort', () => {
    clearTimeout(firstFrameTimer);
    following?.abort();
    registration?.close();
    follower.leave(cutOff);
  });

  const say = (frame: object): boolean => peer.send(JSON.stringify(frame));

  function sendFault(thrown: unknown, id?: string): void {
    const fault = asFault(thrown);
    if (fault.kind === 'internal')
      context.deps.log.error({ err: fault.cause, request_id: requestId }, 'a frame failed');
    const { status, body } = toWireFault(fault, requestId);
    say({ type: 'error', ...(id && { id }), status, error: body.error });
  }

  /** False when the client has disconnected or was disconnected. */
  async function show(event: CoreEvent, replayed: boolean): Promise<boolean> {
    const frame = { type: 'event', event: toWireEvent(event), cursor: event.id, replayed };
    if (!say(frame) && !(await peer.room())) {
      cutOff = true;
      peer.close(CLOSE.overloaded, `too slow; resume after ${last ?? 'the beginning'}`);
      return false;
    }
    last = event.id;
    metrics.eventsSent(1);
    return true;
  }

  function ask(record: AskRecord & Row, replayed: boolean): void {
    if (asked.has(record.id)) return;
    asked.add(record.id);
    say({
      type: 'request',
      request_id: record.id,
      kind: record.kind,
      task_id: record.task_id,
      payload: toWirePermission(record),
      expires_at: record.expires_at,
      replayed,
    });
  }

  /** Sends the open questions, if the caller may read them. */
  async function askOpen(): Promise<void> {
    const where = { ...(here.task_id ? { task_id: here.task_id } : here), state: 'open' };
    const open = await bridge.list<AskRecord & Row>(actor, { object: 'ask', where, limit: 200 }).catch(noneIfForbidden);
    for (const record of open.data) ask(record, true);
  }

  async function follow(after: Cursor | 'now' | undefined): Promise<void> {
    following?.abort();
    const stop = new AbortController();
    following = stop;
    const signal = anySignal([peer.signal, stop.signal]);
    try {
      let tip = after;
      const past = after === 'now' ? [] : bridge.events(actor, { stream, ...(after && { after }) });
      for await (const event of past) {
        if (signal.aborted || !(await show(event, true))) return;
        tip = event.id;
      }
      say({ type: 'caught_up', cursor: tip === 'now' ? null : (tip ?? null) });
      asked.clear();
      await askOpen();
      for await (const event of bridge.follow(actor, { stream, ...(tip && { after: tip }) }, signal)) {
        if (!(await show(event, false))) return;
        if (event.event === 'vendor.tollbridge.ask_opened' && mayAnswer) {
          ask(event.payload.ask, false);
        }
      }
    } catch (thrown) {
      const expired = thrown instanceof Fault && thrown.kind === 'cursor_expired';
      sendFault(thrown);
      peer.close(expired ? CLOSE.cursorExpired : CLOSE.internal, expired ? 'the cursor has expired' : 'broken off');
    }
  }
  const mayAnswer = holds(actor, 'tasks:read');

  /** The client of this connection as a host that runs tools. */
  const host: Host = {
    actor,
    session_id: deps.session ?? '',
    ...(here.task_id && { task_id: here.task_id }),
    ask: ({ id, task_id, payload }, again) =>
      say({ type: 'request', request_id: id, kind: 'tool', task_id, payload, expires_at: null, replayed: again }),
    withdraw: (request_id) => say({ type: 'request.withdrawn', request_id }),
  };
  let registration: ToolRegistration | undefined;

  function register({ id, tools }: Extract<IncomingFrame, { type: 'offer' }>): void {
    requireScope(actor, 'tasks:write');
    if (!deps.session) throw new Fault('invalid_request', 'tools are offered on the socket of a session or a task');
    registration ??= context.hosts.register(host);
    say({ type: 'result', id, status: 200, body: { object: 'list', data: tools.map(({ name }) => name) } });
    registration.replace(tools);
  }

  /** True when the response answers a tool call that was sent to this host. */
  function ran({ id, params, body }: Extract<IncomingFrame, { type: 'command' }>): boolean {
    const requestId = params.request_id ?? '';
    const said = context.hosts.knows(host, requestId) && context.hosts.answer(host, requestId, toCoreResult(body));
    if (said === 'late') throw new Fault('conflict', `request ${requestId} is no longer open`);
    if (!said) return false;
    say({ type: 'result', id, status: 200, body: { object: 'tool_request', id: requestId, status: 'answered' } });
    return true;
  }

  async function obey(command: Extract<IncomingFrame, { type: 'command' }>): Promise<void> {
    try {
      if (command.operation === 'respondPermissionRequest' && ran(command)) return;
      const { status, body } = await perform(command.operation, { ...command, revision: deps.revision, actor });
      say({ type: 'result', id: command.id, status, body });
    } catch (thrown) {
      sendFault(thrown, command.id);
    }
  }

  function take(incoming: IncomingFrame): void {
    switch (incoming.type) {
      case 'ping':
        say({ type: 'pong', t: incoming.t });
        return;
      case 'resume':
        begin(incoming.cursor);
        return;
      case 'offer':
        register(incoming);
        return;
      case 'command':
        if (waiting >= MOST_WAITING) {
          sendFault(new Fault('rate_limited', 'too many commands wait for an answer'), incoming.id);
          return;
        }
        waiting += 1;
        turn = turn
          .then(() => obey(incoming))
          .finally(() => {
            waiting -= 1;
          });
        return;
      default:
        return;
    }
  }

  const firstFrameTimer = setTimeout(() => begin(deps.cursor), deps.cursor ? 0 : FIRST_FRAME_MS);
  function begin(cursor: Cursor | undefined): void {
    clearTimeout(firstFrameTimer);
    follow(cursor ?? deps.begin);
  }

  say({
    type: 'ready',
    session_id: here.session_id ?? null,
    ...(here.task_id && { task_id: here.task_id }),
    cursor: deps.cursor ?? null,
    protocol_version: deps.revision.version,
  });

  return {
    message(text) {
      let frame: JsonObject | undefined;
      try {
        frame = readFrame(text);
        const incoming = toIncoming(frame, here);
        // Any first frame but a cursor means: from the beginning.
        if (incoming.type !== 'resume' && !following) begin(deps.cursor);
        take(incoming);
      } catch (thrown) {
        sendFault(thrown, idOf(frame));
      }
    },
  };
}

function noneIfForbidden(thrown: unknown): { data: readonly (AskRecord & Row)[] } {
  if (thrown instanceof Fault && thrown.kind === 'permission_denied') return { data: [] };
  throw thrown;
}
