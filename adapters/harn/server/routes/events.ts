/** The log as it may be read: ranges, single events, and streams. */
import { type CoreEvent, Fault, type Row } from '../../../../src/index.ts';
import { toWireEvent } from '../../translate.ts';
import type { Call, RouteContext, Routes } from '../call.ts';
import { eventPage, streamOf } from '../pages.ts';
import { streamEvents } from '../sse.ts';

type Ids = `list${'Session' | 'Task' | ''}Events` | `stream${'Session' | 'Task' | ''}Events` | 'getEvent';

export function eventRoutes(context: RouteContext): Pick<Routes, Ids> {
  const { bridge } = context;
  const session = ({ params }: Call) => ({ of: 'session', id: params.session_id! }) as const;
  const task = ({ params }: Call) => ({ of: 'task', id: params.task_id! }) as const;

  return {
    listSessionEvents: async (call) => ({ body: await eventPage(bridge, call, session(call)) }),
    listTaskEvents: async (call) => ({ body: await eventPage(bridge, call, task(call)) }),
    listEvents: async (call) => {
      const { stream, wanted } = streamOf(call.query);
      // A filter that names a hidden object finds nothing, like any other filter.
      return { body: await eventPage(bridge, call, stream, wanted).catch(nothingIfHidden) };
    },
    getEvent: async ({ actor, params }) => ({
      body: toWireEvent(await bridge.view<CoreEvent & Row>(actor, 'event', params.event_id!)),
    }),

    streamSessionEvents: (call) => streamEvents(context, call, { stream: session(call), otherwise: 'beginning' }),
    streamTaskEvents: (call) => streamEvents(context, call, { stream: task(call), otherwise: 'beginning' }),
    streamEvents: (call) => {
      const { stream, wanted } = streamOf(call.query);
      return streamEvents(context, call, { stream, only: wanted, otherwise: 'now' });
    },
  };
}

function nothingIfHidden(thrown: unknown) {
  if (!(thrown instanceof Fault) || thrown.kind !== 'not_found') throw thrown;
  return { object: 'list' as const, data: [], page: { has_more: false, next_cursor: null } };
}
