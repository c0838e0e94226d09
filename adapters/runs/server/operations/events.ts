/** Serves a run's events: page by page, or as a stream, from a sequence number on. */

import { isOver } from '../../../../mappings/runs.ts';
import { type Actor, anySignal, asText } from '../../../../src/index.ts';
import { openSse, sseFrame } from '../../../../src/transport/sse/write.ts';
import { admit } from '../auth.ts';
import type { Call, Reply, RouteContext } from '../call.ts';
import type { RunEvent } from '../frames.ts';
import { RunsRefusal } from '../refusal.ts';
import type { OpenRun } from '../run-reader.ts';

const MOST = 200;

export function listEvents({ runReader }: RouteContext): (call: Call) => Promise<Reply> {
  return async (call) => {
    const cursor = numberIn(call, 'cursor', 0, Number.MAX_SAFE_INTEGER) ?? 0;
    const limit = numberIn(call, 'limit', 1, MOST) ?? 50;
    const { events } = kept(await runReader.open(call.actor, call.id));
    const page = events.slice(cursor, cursor + limit);
    return { body: { events: page, next_cursor: page.at(-1)?.seq ?? cursor } };
  };
}

export function streamEvents(context: RouteContext): (call: Call) => Promise<undefined> {
  const { bridge, runReader, settings } = context;

  return async (call) => {
    const { actor, id, request, response } = call;
    let sent = numberIn(call, 'cursor', 0, Number.MAX_SAFE_INTEGER) ?? lastSeen(call);
    // Refused with a status while that is still possible.
    let run = kept(await runReader.open(actor, id));
    const sse = openSse(response, { keepAliveMs: settings.keepAliveMs });
    const over = new AbortController();
    const signal = anySignal([sse.signal, context.closing, over.signal]);
    const rechecking = setInterval(() => {
      stillWelcome(context, call, actor).catch(() => over.abort());
    }, settings.recheckMs).unref();
    let lingering: NodeJS.Timeout | undefined;

    /** False when the reader is gone or does not read. */
    async function send(): Promise<boolean> {
      const news = run.events.slice(sent);
      for (const event of news) {
        sent = event.seq;
        if (!sse.write(frameOf(event)) && !(await sse.room())) return false;
      }
      clearTimeout(lingering);
      // The run may be retried: a stream that stays open a little longer saves the client a reconnect.
      if (isOver(run.standing.status)) lingering = setTimeout(() => over.abort(), settings.lingerMs);
      return true;
    }

    try {
      const from = {
        stream: { of: 'session', id: run.first.session_id } as const,
        ...(run.upTo && { after: run.upTo }),
      };
      if (!(await send())) return undefined;
      for await (const event of bridge.follow(actor, from, signal)) {
        if (!concerns(run, event)) continue;
        run = await runReader.open(actor, id);
        if (!(await send())) break;
      }
    } catch (thrown) {
      context.deps.log.warn({ err: thrown, request_id: call.requestId }, 'an event stream broke off');
    } finally {
      clearInterval(rechecking);
      clearTimeout(lingering);
      sse.close();
      if (!request.complete) request.resume();
    }
    return undefined;
  };
}

function kept(run: OpenRun): OpenRun {
  if (run.expired) throw new RunsRefusal('RUN_EVENTS_EXPIRED');
  return run;
}

/** Events of its tasks that are news, and the beginning of another attempt. */
function concerns({ current, upTo }: OpenRun, event: { id: string; event: string; task_id?: string | null }): boolean {
  if (event.task_id === current.id) return upTo === undefined || event.id > upTo;
  return event.event === 'task.submitted';
}

/** A key may be revoked, and rights taken away, while its holder reads. */
async function stillWelcome({ deps, runReader }: RouteContext, { request, id }: Call, then: Actor): Promise<void> {
  try {
    const now = await admit(request, deps.authenticate);
    if (JSON.stringify(now) !== JSON.stringify(then)) throw new RunsRefusal('AUTH_FORBIDDEN');
    await runReader.open(now, id);
  } catch (thrown) {
    // A failure to check is no reason to disconnect a client that was authenticated.
    if (thrown instanceof RunsRefusal) throw thrown;
  }
}

function frameOf(event: RunEvent): string {
  return sseFrame({ id: asText(event.seq), event: 'run_event', data: JSON.stringify(event) });
}

/** The `Last-Event-ID` of a browser that reconnects. The query takes precedence. */
function lastSeen({ request }: Call): number {
  const [id] = request.headersDistinct['last-event-id'] ?? [];
  return id === undefined || id === '' ? 0 : whole(id, 0, Number.MAX_SAFE_INTEGER);
}

function numberIn({ query }: Call, name: string, least: number, most: number): number | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw new RunsRefusal('EVENTS_QUERY_PARAMS_INVALID');
  return values[0] === undefined ? undefined : whole(values[0], least, most);
}

function whole(text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || value < least || value > most) throw new RunsRefusal('EVENTS_QUERY_PARAMS_INVALID');
  return value;
}
