/**
 * Calls an agent was let through with and has not been heard of since. Some agents never say how a call went, so this
 * gives up on the oldest ones: by age, and when there are too many. What is given up was let through and not seen to end;
 * nothing more is claimed about it.
 */
import type { Fact, JsonObject } from '../../src/index.ts';

export interface OpenCall {
  readonly id: string;
  readonly tool: string;
}

export interface OpenCalls {
  readonly size: number;
  /** `fingerprint` is of what runs: the arguments as a rule left them. */
  add(fingerprint: string, call: OpenCall, now: number): void;
  /** The oldest call of this fingerprint; whoever takes it knows how it went. */
  take(fingerprint: string): OpenCall | undefined;
  /** By name alone, and only when that leaves no doubt which call is meant. */
  takeOnly(tool: string): OpenCall | undefined;
  latest(fingerprint: string): OpenCall | undefined;
  drop(id: string): void;
  /** Those nobody will hear of any more, most often none. */
  giveUp(now: number): readonly OpenCall[];
  all(): readonly OpenCall[];
}

/** More calls than any agent has in flight at once. */
const MOST_OPEN = 256;
/** Some builds take hours; after this long even they have been forgotten by whoever started them. */
const LONGEST_MS = 24 * 60 * 60 * 1000;

interface Waiting extends OpenCall {
  readonly fingerprint: string;
  readonly since: number;
}

export function createOpenCalls(): OpenCalls {
  /** In the order they were let through. */
  const calls = new Map<string, Waiting>();

  function found(wanted: (call: Waiting) => boolean): Waiting[] {
    return [...calls.values()].filter(wanted);
  }

  function taken(call: Waiting | undefined): Waiting | undefined {
    if (call) calls.delete(call.id);
    return call;
  }

  return {
    get size() {
      return calls.size;
    },
    add(fingerprint, { id, tool }, since) {
      calls.set(id, { id, tool, fingerprint, since });
    },
    take: (fingerprint) => taken(found((call) => call.fingerprint === fingerprint)[0]),
    takeOnly(tool) {
      const named = found((call) => tool === 'unknown' || call.tool === tool);
      return named.length === 1 ? taken(named[0]) : undefined;
    },
    latest: (fingerprint) => found((call) => call.fingerprint === fingerprint).at(-1),
    drop(id) {
      calls.delete(id);
    },
    giveUp(now) {
      // Half of them at once: an agent that never reports then costs one more commit in a hundred calls, not one each.
      let tooMany = calls.size > MOST_OPEN ? calls.size - MOST_OPEN / 2 : 0;
      const given: Waiting[] = [];
      for (const call of calls.values()) {
        if (tooMany <= 0 && now - call.since <= LONGEST_MS) break;
        tooMany -= 1;
        given.push(call);
      }
      for (const { id } of given) calls.delete(id);
      return given;
    },
    all: () => [...calls.values()],
  };
}

/** How a call nobody reported on is told. */
export function notSeen({ id, tool }: OpenCall): Fact {
  const error = 'it was let through, and its outcome was not seen';
  const payload: JsonObject = { tool_call_id: id, name: tool, status: 'error', error, code: 'canceled' };
  return { event: 'tool.failed', payload };
}
