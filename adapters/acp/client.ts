/**
 * Any agent of this protocol as an agent of the house: a process for each session, kept over its tasks and ended with it.
 * What it does through us is held, what it asks about is asked, and everything else is its word.
 */
import { fileURLToPath } from 'node:url';
import { type AgentBackend, Fault, type Work } from '../../src/index.ts';
import { type AcpBackendConfig, type BackendDeps, backendSettingsOf } from './config.ts';
import { rememberedSession } from './prompt.ts';
import { runTask } from './run.ts';
import { openSeat, type Seat, type SeatOptions } from './seat.ts';

interface Place {
  seat: Promise<Seat>;
  idle: NodeJS.Timeout | undefined;
  busy: number;
}

export function acpBackend(
  name: string,
  config: AcpBackendConfig,
  deps: BackendDeps,
  start?: SeatOptions['start'],
): AgentBackend {
  const settings = backendSettingsOf(name, config);
  const places = new Map<string, Place>();
  const ending = new Set<Promise<void>>();
  let closed = false;

  /** The process of this session, started when there is none or the last one has gone. */
  function placeFor(work: Work, signal: AbortSignal): Place {
    const known = places.get(work.session.id);
    if (known) return known;
    const seat = (async () => {
      const before = await rememberedSession(work, name);
      const session = work.session.id;
      return await openSeat({
        settings,
        deps,
        cwd: directoryOf(work),
        session,
        before,
        signal,
        ...(start && { start }),
      });
    })();
    const place: Place = { seat, idle: undefined, busy: 0 };
    places.set(work.session.id, place);
    seat.then(
      ({ peer }) => peer.over.addEventListener('abort', () => leave(work.session.id, place), { once: true }),
      () => leave(work.session.id, place),
    );
    return place;
  }

  /** Takes a process out of use and sees it to its end. */
  function leave(sessionId: string, place: Place): Promise<void> {
    if (places.get(sessionId) === place) places.delete(sessionId);
    clearTimeout(place.idle);
    const end = place.seat
      .then((seat) => seat.close())
      .catch((cause) => {
        if (cause instanceof Fault && cause.kind === 'internal')
          deps.log.error({ err: cause, agent: name }, cause.message);
      })
      .finally(() => ending.delete(end));
    ending.add(end);
    return end;
  }

  function directoryOf({ workspace }: Work): string {
    if (settings.cwd) return settings.cwd;
    const root = workspace?.root ?? '';
    if (root.startsWith('file:')) return fileURLToPath(root);
    const where = root ? `its root is ${root}` : 'it has no root';
    throw new Fault(
      'upstream_unavailable',
      `the workspace is no directory here (${where}): set agents.${name}.acp.cwd`,
    );
  }

  async function work(...[given, sink, signal]: Parameters<AgentBackend['start']>) {
    if (closed) throw new Fault('unavailable', `the agent ${name} is being closed`);
    const sessionId = given.session.id;
    const place = placeFor(given, signal);
    place.busy += 1;
    clearTimeout(place.idle);
    try {
      const seat = await place.seat;
      return await runTask({ settings, deps, work: given, sink, signal, seat });
    } finally {
      place.busy -= 1;
      if (place.busy === 0 && places.get(sessionId) === place) {
        place.idle = setTimeout(() => void leave(sessionId, place), settings.idleMs).unref();
      }
    }
  }

  return {
    name,
    abilities: { resume: false, evidence: 'observed' },
    ...(config.description && { about: { description: config.description } }),
    async start(...given) {
      return { done: work(...given) };
    },
    async release(sessionId) {
      const place = places.get(sessionId);
      if (place) await leave(sessionId, place);
    },
    async close() {
      closed = true;
      for (const [sessionId, place] of [...places]) void leave(sessionId, place);
      await Promise.all([...ending]);
    },
  };
}
