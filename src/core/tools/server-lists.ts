/**
 * The tool lists of all servers as they are known. One server that hangs, crashes or is slow to start delays the others only once, and
 * for a moment: after that its last list is used until it answers. A server that failed is asked again after a growing delay.
 */
import { asFault } from '../../model/faults.ts';
import type { Skill } from '../../model/resources.ts';
import { mostOf } from '../../model/values/most-of.ts';
import type { Logger, ToolBackend, ToolServerState } from '../../ports/index.ts';

export interface ServerLists {
  /** The list of each of these servers; empty for one that has never answered. */
  all(servers: readonly ToolBackend[]): Promise<readonly (readonly Skill[])[]>;
  /** The last known list of one server. */
  known(backend: ToolBackend): readonly Skill[];
  states(servers: readonly ToolBackend[]): readonly ToolServerState[];
  again(servers: readonly ToolBackend[]): void;
}

interface Kept {
  skills: readonly Skill[] | undefined;
  /** Since when it owes an answer. */
  owing: number | undefined;
  /** Others have been answered without it: the next caller does not wait for it at all. */
  late: boolean;
  failure: string | undefined;
  /** When its state last changed. */
  since: number;
  wait: number;
  retryAt: number;
}

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
export const NONE: readonly Skill[] = [];

export function createServerLists(logger: Logger): ServerLists {
  const kept = new WeakMap<ToolBackend, Kept>();

  function entryOf(backend: ToolBackend): Kept {
    const known = kept.get(backend);
    if (known) return known;
    const made: Kept = {
      skills: undefined,
      owing: undefined,
      late: false,
      failure: undefined,
      since: Date.now(),
      wait: 0,
      retryAt: 0,
    };
    kept.set(backend, made);
    return made;
  }

  function answered(backend: ToolBackend, entry: Kept, skills: readonly Skill[]): void {
    if (entry.failure !== undefined || entry.late) logger.info({ server: backend.name }, 'a tool server answers again');
    if (entry.failure !== undefined || entry.skills === undefined) entry.since = Date.now();
    Object.assign(entry, { skills, owing: undefined, late: false, failure: undefined, wait: 0, retryAt: 0 });
  }

  function failed(backend: ToolBackend, entry: Kept, cause: unknown): void {
    const { message } = asFault(cause);
    if (entry.failure !== message) logger.warn({ server: backend.name, why: message }, 'a tool server is unavailable');
    if (entry.failure === undefined) entry.since = Date.now();
    // Callers that waited for one attempt together delay the next one only once.
    const wait = entry.owing === undefined ? entry.wait : Math.min(entry.wait * 2 || FIRST_RETRY_MS, LONGEST_RETRY_MS);
    Object.assign(entry, { owing: undefined, failure: message, wait, retryAt: Date.now() + wait });
  }

  /** Undefined when it is not to be waited for. */
  function ask(backend: ToolBackend): Promise<void> | undefined {
    const entry = entryOf(backend);
    if (Date.now() < entry.retryAt) return undefined;
    entry.owing ??= Date.now();
    const asked = backend.list().then(
      (skills) => answered(backend, entry, skills),
      (cause) => failed(backend, entry, cause),
    );
    return entry.late || entry.failure !== undefined ? undefined : asked;
  }

  return {
    async all(servers) {
      const asked = servers.map(ask);
      await mostOf(asked.filter((each) => each !== undefined));
      return servers.map((backend, at) => {
        const entry = entryOf(backend);
        if (asked[at] && entry.owing !== undefined && !entry.late) {
          entry.late = true;
          logger.warn(
            { server: backend.name },
            'a tool server has not answered; tools are listed without it meanwhile',
          );
        }
        return entry.skills ?? NONE;
      });
    },
    again(servers) {
      for (const backend of servers) entryOf(backend).retryAt = 0;
    },
    known: (backend) => kept.get(backend)?.skills ?? NONE,
    states: (servers) =>
      servers.map((backend) => {
        const { failure, skills, late, since } = entryOf(backend);
        const answers = skills ? 'ready' : 'unknown';
        const state = failure !== undefined ? 'unavailable' : late ? (skills ? 'slow' : 'starting') : answers;
        return {
          name: backend.name,
          state,
          since: new Date(since).toISOString(),
          ...(failure !== undefined && { reason: failure }),
          ...(backend.programs && { programs: backend.programs() }),
        };
      }),
  };
}
