/**
 * The gateway session that records a caller's calls. Callers of the legacy era open a session, and ours lasts as long. Callers of
 * the modern era have none: the gateway keeps one for them from call to call, also across a restart, until they have been idle
 * for `session_idle_ms`; the next call then opens a new one. Taint is recorded by session.
 */
import { asFault, type Bridge, type Clock, type Row, type Session, type Task } from '../../../src/index.ts';
import { lastCounted } from './aggregate/numbered-names.ts';
import { type Caller, scopeOf } from './caller.ts';

export interface CallSessions {
  /** `at` is the address of the request. */
  open(caller: Caller, at: string): Promise<string>;
}

export interface SessionParts {
  readonly bridge: Bridge;
  readonly clock: Clock;
  readonly idleMs: number;
  readonly home: (caller: Caller) => Promise<{ workspace_id: string; persona_id?: string }>;
}

export function createCallSessions({ bridge, clock, idleMs, home }: SessionParts): CallSessions {
  async function begin(caller: Caller, at: string): Promise<string> {
    const body = { ...(await home(caller)), metadata: { mcp: { endpoint: at, client: caller.client } } };
    return (await bridge.submit({ kind: 'session.create', actor: caller.actor, body })).resource.id;
  }

  /** The newest of this caller's sessions at the address. */
  function latest({ actor }: Caller, at: string) {
    return lastCounted(async (count) => (await bridge.bound('mcp', scopeOf(actor), sessionName(at, count)))?.id);
  }

  async function goesOn({ actor }: Caller, id: string): Promise<boolean> {
    const session = await bridge.view<Session & Row>(actor, 'session', id).catch(() => undefined);
    if (!session || session.state === 'CLOSED' || session.state === 'FAILED') return false;
    const query = { object: 'task', where: { session_id: id }, newestFirst: true, limit: 1 };
    const [last] = (await bridge.list<Task & Row>(actor, query)).data;
    return Date.parse(clock.now()) - Date.parse((last ?? session).updated_at) <= idleMs;
  }

  return {
    async open(caller, at) {
      if (caller.session) return await begin(caller, at);
      for (;;) {
        const { count, found: id } = await latest(caller, at);
        if (id !== undefined && (await goesOn(caller, id))) return id;
        const made = await begin(caller, at);
        const { actor } = caller;
        const to = { object: 'session', id: made };
        const body = { protocol: 'mcp', scope: scopeOf(actor), wire_id: sessionName(at, count + 1), to };
        try {
          await bridge.submit({ kind: 'binding.set', actor, body });
          return made;
        } catch (cause) {
          // Another process opened one first: that session is used.
          if (asFault(cause).kind !== 'conflict') throw cause;
        }
      }
    },
  };
}

function sessionName(at: string, count: number): string {
  return `stint:${at}:${count}`;
}
