/**
 * Who is told at an address that a list has changed: whoever has seen another one than they would see now, by the same rules as
 * ever. A change that somebody may not see is none for them. What a client was shown is remembered as a digest.
 */
import { createHash } from 'node:crypto';
import { CHANGES } from '../../mappings/mcp.ts';
import { type Bridge, canonicalJson, type JsonObject, type Logger } from '../../src/index.ts';
import type { Caller } from './caller.ts';
import { type Notice, notice, type Outcome } from './frames.ts';
import type { SessionLine } from './line.ts';

export interface ListChanges {
  /** A session of the legacy era was shown a list; from now on it wants to know when that is another. */
  shown(method: string, outcome: Outcome, caller: Caller): void;
  /** Somebody of the modern era listens, until they no longer do. */
  listen(wishes: JsonObject, caller: Caller, said: (heard: Notice) => void): Promise<() => void>;
  close(): void;
}

interface Listener {
  readonly caller: Caller;
  /** Digests of lists, by the request that shows them. */
  readonly seen: Map<string, string>;
  tell(heard: Notice): void;
}

export interface ChangesParts {
  readonly bridge: Bridge;
  readonly log: Logger;
  /** A list as this caller would see it now; undefined when the method shows none that is told of here. */
  readonly show: (method: string, caller: Caller) => Promise<Outcome> | undefined;
  /** Whether what servers change is this address's to tell of. */
  readonly servers: boolean;
}

/** Changes come in bursts: of several servers, or of several lists of one. */
const GATHER_MS = 50;

export function createListChanges({ bridge, log, show, servers }: ChangesParts): ListChanges {
  const listeners = new Set<Listener>();
  const sessions = new WeakMap<SessionLine, Listener>();
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
      // One that was shown meanwhile is what counts.
      if (now === before || listener.seen.get(method) !== before) continue;
      listener.seen.set(method, now);
      changed = true;
    }
    if (changed && listeners.has(listener)) listener.tell(notice(wire));
  }

  return {
    shown(method, outcome, caller) {
      const { session } = caller;
      if (!session || session.ended.aborted) return;
      const known = sessions.get(session);
      const listener = known ?? {
        caller: atRest(caller, session),
        seen: new Map<string, string>(),
        tell: (heard: Notice) => session.hear(heard),
      };
      listener.seen.set(method, digest(outcome));
      if (known) return;
      sessions.set(session, listener);
      session.ended.addEventListener('abort', add(listener), { once: true });
    },
    async listen(wishes, caller, said) {
      const methods = CHANGES.flatMap(({ wish, methods }) => (wishes[wish] === true ? methods : []));
      if (methods.length === 0) return () => {};
      const listener: Listener = { caller: { ...caller, notify() {} }, seen: new Map(), tell: said };
      const remove = add(listener);
      try {
        for (const method of methods) listener.seen.set(method, digest(await show(method, listener.caller)));
        return remove;
      } catch (cause) {
        // Nobody would ever take away who never got to listen.
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

function digest(outcome: Outcome | undefined): string {
  return createHash('sha256')
    .update(canonicalJson((outcome ?? null) as never))
    .digest('base64url');
}

/** Somebody who asks for nothing just now: no request of theirs is under way. */
function atRest(caller: Caller, session: SessionLine): Caller {
  const { input: _, ...rest } = caller;
  return { ...rest, signal: session.ended, notify() {} };
}
