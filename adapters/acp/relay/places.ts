/**
 * Which workspace and session of ours the agent's names stand for. The agent keeps its own session ids and the editor sees
 * them unchanged; ours are bound to them in the log, so that a session that is loaded again is the same one there.
 */
import { type Actor, asFault, type Bridge, type JsonObject, type Row, type Session } from '../../../src/index.ts';
import { NOTHING_SPENT, type Spent } from '../meter.ts';
import { listOf, objectOf, textOf, within } from '../shapes.ts';

export interface Place {
  readonly wireId: string;
  readonly sessionId: string;
  readonly workspaceId: string;
  readonly cwd: string;
  /** The mode the agent is in, as far as it said. */
  mode: string | undefined;
  /** Options by which the mode can be chosen too. */
  modeOptions: readonly string[];
  spent: Spent;
  /** The agent tells its history again; it stands in the log already. */
  replaying: boolean;
}

export interface Places {
  workspace(cwd: string): Promise<string>;
  /** A session of ours that has no wire name yet. Refused by policy: a fault. */
  create(cwd: string | undefined, about: JsonObject): Promise<Omit<Place, 'wireId'>>;
  /** From now on the agent's name stands for it. */
  bind(wireId: string, made: Omit<Place, 'wireId'>): { readonly place: Place; readonly bound: Promise<void> };
  known(wireId: string): Place | undefined;
  /** Bound before, in this process or another; otherwise made now. */
  find(wireId: string, cwd?: string, about?: JsonObject): Promise<Place>;
  close(wireId: string): Promise<void>;
  discard(made: Omit<Place, 'wireId'>): Promise<void>;
}

export interface PlacesDeps {
  readonly bridge: Bridge;
  readonly person: Actor;
  /** The agent's name; ids are unique per agent only. */
  readonly name: string;
  readonly cwd: string;
  /** Of every session that is made here. */
  readonly persona?: string | undefined;
}

const PROTOCOL = 'acp';

export function createPlaces({ bridge, person, name, cwd: here, persona }: PlacesDeps): Places {
  const scope = `relay:${name}`;
  const known = new Map<string, Place>();
  const finding = new Map<string, Promise<Place>>();
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
      // Another process was quicker; its workspace is the one.
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

  async function create(cwd = here, about: JsonObject = {}): Promise<Omit<Place, 'wireId'>> {
    const workspaceId = await workspace(cwd);
    const metadata = { acp: { ...about, agent: name, cwd } };
    const body = { workspace_id: workspaceId, ...(persona && { persona_id: persona }), metadata };
    const { resource } = await bridge.submit({ kind: 'session.create', actor: person, body });
    return placed(resource.id, workspaceId, cwd);
  }

  function bind(wireId: string, made: Omit<Place, 'wireId'>) {
    const place: Place = { ...made, wireId };
    known.set(wireId, place);
    return { place, bound: nameIt(wireId, made.sessionId) };
  }

  /** A name may have stood for sessions that are closed by now; the next one goes by the next number. */
  async function nameIt(wireId: string, sessionId: string): Promise<void> {
    for (let count = 1; ; count += 1) {
      try {
        return await bindTo(`session:${wireId}${count === 1 ? '' : `#${count}`}`, 'session', sessionId);
      } catch (cause) {
        if (asFault(cause).kind !== 'conflict' || count > 1000) throw cause;
      }
    }
  }

  async function look(wireId: string, cwd: string, about: JsonObject): Promise<Place> {
    let last: (Session & Row) | undefined;
    for (let count = 1; ; count += 1) {
      const to = await bridge.bound(PROTOCOL, scope, `session:${wireId}${count === 1 ? '' : `#${count}`}`);
      if (!to) break;
      last = await bridge.view<Session & Row>(person, 'session', to.id);
    }
    if (last && last.state !== 'CLOSED' && last.state !== 'FAILED') {
      const was = textOf(within(last.metadata, 'acp', 'cwd')) ?? cwd;
      const place: Place = { ...placed(last.id, last.workspace_id, was), wireId };
      known.set(wireId, place);
      return place;
    }
    const { place, bound } = bind(wireId, await create(cwd, about));
    await bound;
    return place;
  }

  return {
    workspace,
    create,
    bind,
    known: (wireId) => known.get(wireId),
    find(wireId, cwd = here, about = {}) {
      const place = known.get(wireId);
      if (place) return Promise.resolve(place);
      const found = finding.get(wireId) ?? look(wireId, cwd, about).finally(() => finding.delete(wireId));
      finding.set(wireId, found);
      return found;
    },
    async close(wireId) {
      const place = known.get(wireId);
      known.delete(wireId);
      if (place) await bridge.submit({ kind: 'session.close', actor: person, body: { session_id: place.sessionId } });
    },
    async discard({ sessionId }) {
      await bridge.submit({ kind: 'session.close', actor: person, body: { session_id: sessionId } });
    },
  };
}

function placed(sessionId: string, workspaceId: string, cwd: string): Omit<Place, 'wireId'> {
  return { sessionId, workspaceId, cwd, mode: undefined, modeOptions: [], spent: NOTHING_SPENT, replaying: false };
}

/** What the answer to new, load and resume says about how the agent may be switched. */
export function learnModes(place: Place, result: unknown): void {
  place.mode = textOf(within(result, 'modes', 'currentModeId')) ?? place.mode;
  const options = listOf(within(result, 'configOptions')).filter((option) => within(option, 'category') === 'mode');
  if (options.length === 0) return;
  place.modeOptions = options.flatMap((option) => {
    const { id, configId } = objectOf(option) ?? {};
    return textOf(id) ?? textOf(configId) ?? [];
  });
  place.mode ??= textOf(within(options[0], 'currentValue'));
}
