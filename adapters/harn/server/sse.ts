/**
 * Sends events to one follower, from its cursor on: past events, then live ones, none twice, none left out. An error that ends
 * the stream is reported in it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { asText, type CoreEvent, type Cursor, Fault, isTerminal, type Stream } from '../../../src/index.ts';
import { bearerOf } from '../../../src/transport/http/bearer.ts';
import { requestIdOf } from '../../../src/transport/http/server.ts';
import { openSse, sseFrame } from '../../../src/transport/sse/write.ts';
import { asciiJson, toWireFault } from '../translate.ts';
import type { Call, Reply, RouteContext } from './call.ts';
import { createOutbox } from './outbox.ts';
import { beginning, readable } from './pages.ts';

/**
 * A follower of the whole log is an observer: nothing waits for an answer on such a stream. The first event is sent at once; those of the
 * next milliseconds are taken and written together, because each event by itself costs several times as much, for every observer.
 */
const PACE_OF_ALL_MS = 20;
/** Older events are read and not waited for. */
const PAST_MS = 1000;

export interface StreamRequest {
  readonly stream: Stream;
  /** The filter on the stream. */
  readonly only?: (event: CoreEvent) => boolean;
  /** Where a reader without a cursor begins. */
  readonly otherwise: 'beginning' | 'now';
}

export function endsTask({ event, payload }: CoreEvent): boolean {
  return /^task\.(completed|failed|canceled)$/.test(event) && isTerminal(asText(payload.to));
}

export function cursorOf(call: Call): Cursor | undefined {
  const values = call.http?.request.headersDistinct['last-event-id'] ?? [];
  if (values.length > 1) throw new Fault('invalid_request', 'more than one Last-Event-ID', { param: 'last-event-id' });
  return values[0] || call.query.last_event_id || undefined;
}

export async function streamEvents(
  context: RouteContext,
  call: Call,
  { stream, only, otherwise }: StreamRequest,
): Promise<Reply> {
  const { bridge, deps, settings, metrics } = context;
  const { request, response } = call.http!;
  const cursor = cursorOf(call);
  // Refusals are HTTP statuses while that is possible; an expired cursor is reported in the stream.
  const begin = cursor || otherwise === 'now' ? undefined : await beginning(bridge, call.actor, stream);
  const after = cursor ?? (otherwise === 'now' ? 'now' : begin?.after);
  const expired = begin?.expired ?? (await readable(bridge, call.actor, stream, after));
  // No event follows the end of a task: 204 makes a browser stop reconnecting.
  if (!expired && cursor && stream.of === 'task' && (await isOver(context, call, stream, cursor))) {
    return { status: 204, body: undefined };
  }
  if (request.method === 'HEAD') return { bytes: '', type: 'text/event-stream' };

  const sse = openSse(response, {
    keepAliveMs: settings.keepAliveMs,
    stallMs: settings.stallMs,
    bufferLimit: settings.bufferBytes,
  });
  let last = cursor;
  const sendFault = (fault: unknown) => {
    const { body } = toWireFault(fault, requestIdOf(request));
    // The id is where the reader already is, so that an automatic retry does not skip anything.
    return sseFrame({ ...(last && { id: last }), event: 'error', data: asciiJson(body) });
  };
  if (expired) {
    sse.close(sendFault(expired));
    return 'answered';
  }
  const follower = context.followers.add({
    kind: 'sse',
    bearer: bearerOf(request),
    actor: call.actor,
    dismiss: () => sse.close(sendFault(new Fault('unauthenticated', 'the token no longer holds'))),
    drain: () => sse.close(),
  });

  const outbox = createOutbox(sse, (events) => {
    last = events.at(-1)?.id ?? last;
    metrics.eventsSent(events.length);
  });
  const put = (event: CoreEvent) => (only && !only(event)) || outbox.put(event);
  try {
    const events = bridge.follow(call.actor, { stream, ...(after && { after }) }, sse.signal);
    for await (const event of events) {
      let roomy = put(event);
      if (stream.of === 'all') {
        for (let next = events.ready?.(); next; next = roomy ? events.ready?.() : undefined) roomy = put(next);
      }
      if (!roomy && !(await outbox.room())) break;
      if (stream.of === 'task' && endsTask(event)) break;
      if (stream.of === 'all' && Date.parse(deps.clock.now()) - Date.parse(event.created_at) < PAST_MS) {
        outbox.flush();
        await sleep(PACE_OF_ALL_MS);
      }
    }
    outbox.flush();
    if (sse.stalled) {
      const details = { resume_from: last ?? null };
      sse.close(sendFault(new Fault('deadline_exceeded', 'the reader did not keep up', { details })));
    } else {
      sse.close();
    }
  } catch (thrown) {
    deps.log.warn({ err: thrown, request_id: requestIdOf(request) }, 'an event stream broke off');
    outbox.flush();
    sse.close(sendFault(thrown));
  } finally {
    follower.leave(sse.stalled);
  }
  return 'answered';
}

async function isOver({ bridge }: RouteContext, { actor }: Call, stream: Stream, cursor: Cursor): Promise<boolean> {
  const kinds = ['task.completed', 'task.failed', 'task.canceled'];
  for await (const event of bridge.events(actor, { stream, kinds, limit: 1 })) return event.id <= cursor;
  return false;
}
