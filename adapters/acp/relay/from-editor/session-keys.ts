/**
 * Maps the agent's session ids to our workspaces and sessions. The editor sees the agent's ids unchanged; ours are bound to
 * them in the log, so that a session that is loaded again is the same one there.
 */
import { type Actor, asFault, type Bridge, type JsonObject, type Row, type Session } from '../../../../src/index.ts';
import { NOTHING_SPENT, type Spent } from '../../client/usage.ts';
import { listOf, objectOf, textOf, within } from '../../shapes.ts';

export interface SessionKey {
  readonly wireId: string;
  readonly sessionId: string;
  readonly workspaceId: string;
  readonly cwd: string;
  /** The agent's mode, as far as it reported one. */
  mode: string | undefined;
  /** Options that also select the mode. */
  modeOptions: readonly string[];
  spent: Spent;
  /** Refusals whose reasons the agent has not been told. */
  readonly untold: string[];
  /** The agent is replaying its history, which is already in the log; `unseen`: the editor gets it from there, or not at all. */
  replaying: boolean | 'unseen';
  /** The agent does not know the conversation so far. */
  forgotten: boolean;
}

export interface SessionKeys {
  workspace(cwd: string): Promise<string>;
  /** Creates a session without a wire id. Throws a fault when policy denies it, and waits where it leaves it to a person. */
  create(cwd: string | undefined, about: JsonObject, waiting: WaitingToOpen): Promise<Omit<SessionKey, 'wireId'>>;
  /** Binds the agent's session id to it. */
  bind(
    wireId: string,
    made: Omit<SessionKey, 'wireId'>,
  ): { readonly sessionKey: SessionKey; readonly bound: Promise<void> };
  known(wireId: string): SessionKey | undefined;
  /** By the id of our session. */
  ofSession(sessionId: string): SessionKey | undefined;
  /** The session bound earlier, in this process or another; otherwise created now. */
  find(wireId: string, cwd?: string, about?: JsonObject, waiting?: WaitingToOpen): Promise<SessionKey>;
  /** The session bound earlier, if it can still be used. */
  earlier(wireId: string): Promise<SessionKey | undefined>;
  close(wireId: string): Promise<void>;
  discard(made: Omit<SessionKey, 'wireId'>): Promise<void>;
}

/** A request that waits where a rule leaves it to a person whether its session may be opened. */
export interface WaitingToOpen {
  /** Called with the id of the question. */
  asked(askId: string): void;
  /** Fires when the request is taken back. */
  readonly signal: AbortSignal;
}

export interface SessionKeysDeps {
  readonly bridge: Bridge;
  readonly person: Actor;
  /** The agent's name; session ids are unique per agent only. */
  readonly name: string;
  readonly cwd: string;
  /** The persona of every session created here. */
  readonly persona?: string | undefined;
  /** Called with every session that can be used on this connection. */
  readonly opened: (sessionKey: SessionKey) => void;
}

const PROTOCOL = 'acp';

export function createSessionKeys({ bridge, person, name, cwd: here, persona, opened }: SessionKeysDeps): SessionKeys {
  const scope = `relay:${name}`;
  const known = new Map<string, SessionKey>();
  const finding = new Map<string, Promise<SessionKey>>();
  const workspaces = new Map<string, Promise<string>>();

  async function bindTo(wire_id: string, object: string, id: string): Promise<void> {
    const body = { protocol: PROTOCOL, scope, wire_id, to: { object, id } };
    await bridge.submit({ kind: 'binding.set', actor: person, body });
  }

  async function makeWorkspace(cwd: string): Promise<string> {
    const wireId = `workspace:${cwd}`;
    const bound = await bridge.bound(PROTOCOL, scope, wireId);
    if (bound) return bound.id;
    const body = { name: cwd.split('/').findLast(Boolean) ?? 'root', root: `file://${encodeURI(cwd)}` };
    const made = await bridge.submit({ kind: 'resource.create', actor: person, body: { object: 'workspace', body } });
    try {
      await bindTo(wireId, 'workspace', made.resource.id);
      return made.resource.id;
    } catch (cause) {
      // Another process was first; its workspace counts.
      const other = asFault(cause).kind === 'conflict' ? await bridge.bound(PROTOCOL, scope, wireId) : undefined;
      if (!other) throw cause;
      return other.id;
    }
  }

  function workspace(cwd: string): Promise<string> {
    const found = workspaces.get(cwd) ?? makeWorkspace(cwd);
    workspaces.set(cwd, found);
    found.catch(() => workspaces.delete(cwd));
    return found;
  }

  async function create(
    cwd = here,
    about: JsonObject = {},
    waiting?: WaitingToOpen,
  ): Promise<Omit<SessionKey, 'wireId'>> {
    const workspaceId = await workspace(cwd);
    const metadata = { acp: { ...about, agent: name, cwd } };
    const body = { workspace_id: workspaceId, agent: name, ...(persona && { persona_id: persona }), metadata };
    const wait = waiting && { asked: waiting.asked, signal: waiting.signal };
    const command = { kind: 'session.create', actor: person, body, ...wait } as const;
    const { resource } = await bridge.submit(command);
    return placed(resource.id, workspaceId, cwd);
  }

  function bind(wireId: string, made: Omit<SessionKey, 'wireId'>) {
    const sessionKey: SessionKey = { ...made, wireId };
    known.set(wireId, sessionKey);
    opened(sessionKey);
    return { sessionKey, bound: nameIt(wireId, made.sessionId) };
  }

  /** An id may have been bound to sessions that are closed by now; the next one gets the next number. */
  async function nameIt(wireId: string, sessionId: string): Promise<void> {
    for (let count = 1; ; count += 1) {
      try {
        return await bindTo(`session:${wireId}${count === 1 ? '' : `#${count}`}`, 'session', sessionId);
      } catch (cause) {
        if (asFault(cause).kind !== 'conflict' || count > 1000) throw cause;
      }
    }
  }

  async function earlier(wireId: string): Promise<SessionKey | undefined> {
    const open = known.get(wireId);
    if (open) return open;
    let last: (Session & Row) | undefined;
    for (let count = 1; ; count += 1) {
      const to = await bridge.bound(PROTOCOL, scope, `session:${wireId}${count === 1 ? '' : `#${count}`}`);
      if (!to) break;
      last = await bridge.view<Session & Row>(person, 'session', to.id);
    }
    if (!last || last.state === 'CLOSED' || last.state === 'FAILED') return undefined;
    // Its agent is in this process now: from here on, work of other clients is for us.
    await bridge.submit({ kind: 'session.update', actor: person, body: { session_id: last.id, agent: name } });
    const was = textOf(within(last.metadata, 'acp', 'cwd')) ?? here;
    const sessionKey: SessionKey = { ...placed(last.id, last.workspace_id, was), wireId };
    known.set(wireId, sessionKey);
    opened(sessionKey);
    return sessionKey;
  }

  async function look(wireId: string, cwd: string, about: JsonObject, waiting?: WaitingToOpen): Promise<SessionKey> {
    const before = await earlier(wireId);
    if (before) return before;
    const { sessionKey, bound } = bind(wireId, await create(cwd, about, waiting));
    await bound;
    return sessionKey;
  }

  return {
    workspace,
    create,
    bind,
    earlier,
    known: (wireId) => known.get(wireId),
    ofSession: (id) => [...known.values()].find(({ sessionId }) => sessionId === id),
    find(wireId, cwd = here, about = {}, waiting) {
      const sessionKey = known.get(wireId);
      if (sessionKey) return Promise.resolve(sessionKey);
      const found = finding.get(wireId) ?? look(wireId, cwd, about, waiting).finally(() => finding.delete(wireId));
      finding.set(wireId, found);
      return found;
    },
    async close(wireId) {
      const sessionKey = known.get(wireId);
      known.delete(wireId);
      if (sessionKey)
        await bridge.submit({ kind: 'session.close', actor: person, body: { session_id: sessionKey.sessionId } });
    },
    async discard({ sessionId }) {
      await bridge.submit({ kind: 'session.close', actor: person, body: { session_id: sessionId } });
    },
  };
}

function placed(sessionId: string, workspaceId: string, cwd: string): Omit<SessionKey, 'wireId'> {
  const unknown = {
    mode: undefined,
    modeOptions: [],
    spent: NOTHING_SPENT,
    untold: [],
    replaying: false,
    forgotten: false,
  };
  return { sessionId, workspaceId, cwd, ...unknown };
}

/** Reads modes and options from the result of new, load and resume. */
export function learnModes(sessionKey: SessionKey, result: unknown): void {
  sessionKey.mode = textOf(within(result, 'modes', 'currentModeId')) ?? sessionKey.mode;
  const options = listOf(within(result, 'configOptions')).filter((option) => within(option, 'category') === 'mode');
  if (options.length === 0) return;
  sessionKey.modeOptions = options.flatMap((option) => {
    const { id, configId } = objectOf(option) ?? {};
    return textOf(id) ?? textOf(configId) ?? [];
  });
  sessionKey.mode ??= textOf(within(options[0], 'currentValue'));
}
