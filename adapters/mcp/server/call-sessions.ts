/**
 * The gateway session that records a caller's calls. Processes that one client started, one for each of its servers, share a
 * session, so that the taint of one server's content is on calls of the others. Other callers of the legacy era open a session,
 * and ours lasts as long. Callers of
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
  /** Names the client that started this process, where its calls share a session with those of its other servers. */
  readonly conversation?: string | undefined;
}

export function createCallSessions({ bridge, clock, idleMs, home, conversation }: SessionParts): CallSessions {
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
    // A conversation lasts as long as its client runs.
    if (conversation !== undefined) return true;
    const query = { object: 'task', where: { session_id: id }, newestFirst: true, limit: 1 };
    const [last] = (await bridge.list<Task & Row>(actor, query)).data;
    return Date.parse(clock.now()) - Date.parse((last ?? session).updated_at) <= idleMs;
  }

  return {
    async open(caller, at) {
      if (caller.session && conversation === undefined) return await begin(caller, at);
      const key = conversation === undefined ? at : `client:${conversation}`;
      for (;;) {
        const { count, found: id } = await latest(caller, key);
        if (id !== undefined && (await goesOn(caller, id))) return id;
        const made = await begin(caller, at);
        const { actor } = caller;
        const to = { object: 'session', id: made };
        const body = { protocol: 'mcp', scope: scopeOf(actor), wire_id: sessionName(key, count + 1), to };
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
