/**
 * Notifies clients that a list has changed: those that would now see a different list than they were shown, under the rules for
 * that caller. A change that a caller may not see is not announced to it. The list a client was shown is kept as a digest.
 */
import { createHash } from 'node:crypto';
import { CHANGES } from '../../../mappings/mcp.ts';
import { type Bridge, canonicalJson, type JsonObject, type Logger } from '../../../src/index.ts';
import { type FrameOutcome, type Notice, notice } from '../frames.ts';
import type { SessionContext } from '../request-context.ts';
import type { Caller } from './caller.ts';

export interface ListChanges {
  /** A legacy session was shown a list; from now on it is notified when that list changes. */
  shown(method: string, outcome: FrameOutcome, caller: Caller): void;
  /** A modern client listens, until the returned function is called. */
  listen(wishes: JsonObject, caller: Caller, said: (notice: Notice) => void): Promise<() => void>;
  close(): void;
}

interface Listener {
  readonly caller: Caller;
  /** Digests of lists, by the request that shows them. */
  readonly seen: Map<string, string>;
  send(notice: Notice): void;
}

export interface ChangesParts {
  readonly bridge: Bridge;
  readonly log: Logger;
  /** A list as this caller would see it now; undefined for methods whose changes are not announced here. */
  readonly show: (method: string, caller: Caller) => Promise<FrameOutcome> | undefined;
  /** Whether this address announces changes that servers make. */
  readonly servers: boolean;
}

/** Changes arrive in bursts: from several servers, or in several lists of one. */
const GATHER_MS = 50;

export function createListChanges({ bridge, log, show, servers }: ChangesParts): ListChanges {
  const listeners = new Set<Listener>();
  const sessions = new WeakMap<SessionContext, Listener>();
  const pending = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let unwatch: (() => void) | undefined;

  function add(listener: Listener): () => void {
    listeners.add(listener);
    unwatch ??= bridge.watch(({ list }) => {
      for (const row of CHANGES) if (list === undefined || row.list === list) pending.add(row.list);
      timer ??= setTimeout(look, GATHER_MS).unref();
    }, servers);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      unwatch?.();
      unwatch = undefined;
    };
  }

  function look(): void {
    timer = undefined;
    const rows = CHANGES.filter(({ list }) => pending.has(list));
    pending.clear();
    for (const listener of listeners) {
      for (const row of rows) {
        compare(listener, row).catch((cause) => log.info({ err: cause }, 'whether a list has changed is not known'));
      }
    }
  }

  async function compare(listener: Listener, { methods, wire }: (typeof CHANGES)[number]): Promise<void> {
    let changed = false;
    for (const method of methods) {
      const before = listener.seen.get(method);
      if (before === undefined) continue;
      const now = digest(await show(method, listener.caller));
      // A list that was shown to the client in the meantime takes precedence.
      if (now === before || listener.seen.get(method) !== before) continue;
      listener.seen.set(method, now);
      changed = true;
    }
    if (changed && listeners.has(listener)) listener.send(notice(wire));
  }

  return {
    shown(method, outcome, caller) {
      const { session } = caller;
      if (!session || session.ended.aborted) return;
      const known = sessions.get(session);
      const listener = known ?? {
        caller: atRest(caller, session),
        seen: new Map<string, string>(),
        send: (notice: Notice) => session.notify(notice),
      };
      listener.seen.set(method, digest(outcome));
      if (known) return;
      sessions.set(session, listener);
      session.ended.addEventListener('abort', add(listener), { once: true });
    },
    async listen(wishes, caller, said) {
      const methods = CHANGES.flatMap(({ wish, methods }) => (wishes[wish] === true ? methods : []));
      if (methods.length === 0) return () => {};
      const listener: Listener = { caller: { ...caller, notify() {} }, seen: new Map(), send: said };
      const remove = add(listener);
      try {
        for (const method of methods) listener.seen.set(method, digest(await show(method, listener.caller)));
        return remove;
      } catch (cause) {
        // The caller gets no function to remove a listener that could not be added.
        remove();
        throw cause;
      }
    },
    close() {
      clearTimeout(timer);
      unwatch?.();
      listeners.clear();
    },
  };
}

/** Without `_meta`, which says which servers answer: that changes while the list does not. */
function digest(outcome: FrameOutcome | undefined): string {
  const { _meta: _, ...list } = outcome && 'result' in outcome ? outcome.result : {};
  return createHash('sha256').update(canonicalJson(list)).digest('base64url');
}

/** The caller without a request under way. */
function atRest(caller: Caller, session: SessionContext): Caller {
  const { input: _, ...rest } = caller;
  return { ...rest, signal: session.ended, notify() {} };
}
