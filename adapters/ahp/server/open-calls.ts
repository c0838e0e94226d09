/**
 * Calls that were allowed and not reported since. Some agents never report the end of a call, so this gives up the oldest ones:
 * by age, and when there are too many. A call that is given up was allowed and not seen to end; nothing more is claimed about
 * it.
 */
import type { Fact, JsonObject } from '../../../src/index.ts';

export interface OpenCall {
  readonly id: string;
  readonly tool: string;
}

export interface OpenCalls {
  readonly size: number;
  /** `fingerprint` covers the arguments that run, as a rule left them. */
  add(fingerprint: string, call: OpenCall, now: number): void;
  /** Removes and returns the oldest call of this fingerprint, because its end is known. */
  take(fingerprint: string): OpenCall | undefined;
  /** By name alone, and only when exactly one call matches. */
  takeOnly(tool: string): OpenCall | undefined;
  /** By name alone, the oldest: for calls where any match will do. */
  takeAny(tool: string): OpenCall | undefined;
  latest(fingerprint: string): OpenCall | undefined;
  drop(id: string): void;
  /** Calls that will not be reported any more, most often none. */
  giveUp(now: number): readonly OpenCall[];
  all(): readonly OpenCall[];
}

/** More calls than any agent has in flight at once. */
const MOST_OPEN = 256;
/** Some builds take hours; after this long even those will not be reported. */
const LONGEST_MS = 24 * 60 * 60 * 1000;

interface Waiting extends OpenCall {
  readonly fingerprint: string;
  readonly since: number;
}

export function createOpenCalls(): OpenCalls {
  /** In the order they were allowed. */
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
    takeAny: (tool) => taken(found((call) => tool === 'unknown' || call.tool === tool)[0]),
    latest: (fingerprint) => found((call) => call.fingerprint === fingerprint).at(-1),
    drop(id) {
      calls.delete(id);
    },
    giveUp(now) {
      // Half of them at once: an agent that never reports then costs one more commit in a hundred calls, not one each.
      let tooMany = calls.size > MOST_OPEN ? calls.size - MOST_OPEN / 2 : 0;
      const dropped: Waiting[] = [];
      for (const call of calls.values()) {
        if (tooMany <= 0 && now - call.since <= LONGEST_MS) break;
        tooMany -= 1;
        dropped.push(call);
      }
      for (const { id } of dropped) calls.delete(id);
      return dropped;
    },
    all: () => [...calls.values()],
  };
}

/** The fact for a call without a report. */
export function notSeen(call: OpenCall): Fact {
  return unreported(call, 'it was let through, and its outcome was not seen', 'outcome_unknown');
}

/** The same for a run that the agent reports as canceled: by that report its calls were stopped. */
export function stoppedWithRun(call: OpenCall): Fact {
  return unreported(call, 'its agent canceled the run before it was seen to end', 'canceled');
}

function unreported({ id, tool }: OpenCall, error: string, code: string): Fact {
  const payload: JsonObject = { tool_call_id: id, name: tool, status: 'error', error, code };
  return { event: 'tool.failed', payload };
}
