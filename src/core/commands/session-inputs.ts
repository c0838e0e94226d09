/**
 * Named private inputs of sessions: secrets and variables that a client gives to a running session. Values exist in the memory of
 * this process only. Every secret is taught to the redactor before it is kept, so that it cannot reach the log; a secret that the
 * redactor cannot recognise is refused. A session that is closed, forked or continued by another process has no inputs.
 */
import type { Actor } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import type { Session } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type {
  AgentBackend,
  Clock,
  InputCommand,
  InputDescription,
  InputGrant,
  InputSpec,
  Row,
  SessionInputsView,
} from '../../ports/index.ts';
import { type Access, requireScope } from '../access.ts';

export interface SessionInputs {
  /** The outcome of a command, with descriptions; the value of a secret is in none of them. */
  apply(actor: Actor, sessionId: string, command: InputCommand): Promise<JsonObject>;
  /** The inputs as an agent at work in the session reads them. */
  view(sessionId: string): SessionInputsView;
  /** Destroys the values. */
  release(sessionId: string): void;
}

interface SessionInputsDeps {
  readonly access: Access;
  readonly clock: Clock;
  /** False when the redactor cannot recognise the value in a text. */
  readonly learn: (secret: string) => boolean;
  readonly backends: () => Iterable<AgentBackend>;
}

interface Entry extends InputGrant {
  /** The host whose snapshot contained the input. */
  readonly source?: string;
}

interface Inputs {
  readonly entries: ReadonlyMap<string, Entry>;
  readonly sources: ReadonlyMap<string, number>;
  readonly revision: number;
}

const NONE: Inputs = { entries: new Map(), sources: new Map(), revision: 0 };
const MOST_INPUTS = 256;
const MOST_SOURCES = 256;
const LARGEST_VALUE = 65_536;
const LARGEST_SESSION = 1_048_576;
/** A bound for the memory of the process: 64 sessions with the largest inputs. */
const LARGEST_TOTAL = 64 * LARGEST_SESSION;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const SOURCE = /^[A-Za-z0-9_-]{1,128}$/;
const MOST_ORIGINS = 32;

export function createSessionInputs({ access, clock, learn, backends }: SessionInputsDeps): SessionInputs {
  const sessions = new Map<string, Inputs>();
  const nowMs = () => Date.parse(clock.now());

  /** Expired inputs are removed when the inputs are next looked at. */
  function current(sessionId: string): Inputs {
    const inputs = sessions.get(sessionId) ?? NONE;
    const valid = [...inputs.entries].filter(([, { spec }]) => !isExpired(spec, nowMs()));
    if (valid.length === inputs.entries.size) return inputs;
    return keep(sessionId, { ...inputs, entries: new Map(valid), revision: inputs.revision + 1 });
  }

  function keep(sessionId: string, inputs: Inputs): Inputs {
    sessions.set(sessionId, inputs);
    return inputs;
  }

  /** Fails before anything has changed. */
  function checkSizes(sessionId: string, entries: ReadonlyMap<string, Entry>): void {
    const size = sizeOf(entries);
    let total = size;
    for (const [id, other] of sessions) if (id !== sessionId) total += sizeOf(other.entries);
    if (entries.size > MOST_INPUTS || size > LARGEST_SESSION || total > LARGEST_TOTAL) {
      throw new Fault('invalid_request', 'the session has reached its limit for private inputs');
    }
  }

  function checkedGrant({ spec, value }: InputGrant): InputGrant {
    const bytes = Buffer.byteLength(value);
    if (bytes > LARGEST_VALUE || value.includes('\0') || (spec.kind !== 'variable' && value === '')) {
      throw invalid('a value has at most 64 KiB and no NUL character, and that of a secret is not empty', '/value');
    }
    return { spec: checkedSpec(spec, nowMs()), value };
  }

  function teach(secret: string): void {
    if (learn(secret)) return;
    throw invalid('this secret is too short to be kept out of the log: use six characters or more', '/value');
  }

  function put(sessionId: string, grant: InputGrant, replace: boolean): JsonObject {
    const { spec, value } = checkedGrant(grant);
    const inputs = current(sessionId);
    if (inputs.entries.has(spec.name) && !replace) {
      throw new Fault('conflict', `the session has an input ${spec.name}: send "replace": true, or use another name`);
    }
    const entries = new Map(inputs.entries).set(spec.name, { spec, value });
    checkSizes(sessionId, entries);
    if (spec.kind !== 'variable') teach(value);
    keep(sessionId, { ...inputs, entries, revision: inputs.revision + 1 });
    return { input: describe({ spec, value }) };
  }

  function remove(sessionId: string, name: string): JsonObject {
    const inputs = current(sessionId);
    const entries = new Map(inputs.entries);
    const removed = entries.delete(name);
    if (removed) keep(sessionId, { ...inputs, entries, revision: inputs.revision + 1 });
    return { removed };
  }

  /** Replaces the inputs of one host by its newer snapshot. An older snapshot cannot bring back an input that was removed. */
  function sync(sessionId: string, { snapshot }: Extract<InputCommand, { kind: 'sync' }>): JsonObject {
    const { sourceId, revision } = snapshot;
    if (!SOURCE.test(sourceId)) throw invalid('a source is named by letters, digits, - and _', '/snapshot/sourceId');
    const inputs = current(sessionId);
    const known = inputs.sources.get(sourceId);
    if (known !== undefined && revision < known) throw new Fault('conflict', 'a newer snapshot has been applied');
    if (known === revision) return { applied: false, inputs: list(sessionId) };
    const entries = new Map([...inputs.entries].filter(([, { source }]) => source !== sourceId));
    for (const grant of snapshot.inputs) {
      const checked = checkedGrant(grant);
      if (entries.has(checked.spec.name)) throw new Fault('conflict', `another host has given ${checked.spec.name}`);
      entries.set(checked.spec.name, { ...checked, source: sourceId });
    }
    checkSizes(sessionId, entries);
    if (known === undefined && inputs.sources.size >= MOST_SOURCES) {
      throw new Fault('invalid_request', 'the session has private inputs from as many hosts as it may have');
    }
    for (const { spec, value } of snapshot.inputs) if (spec.kind !== 'variable') teach(value);
    for (const value of snapshot.redactions) teach(value);
    const sources = new Map(inputs.sources).set(sourceId, revision);
    keep(sessionId, { entries, sources, revision: inputs.revision + 1 });
    return { applied: true, inputs: list(sessionId) };
  }

  const view = (sessionId: string): SessionInputsView => ({
    get revision() {
      return current(sessionId).revision;
    },
    names: () => [...current(sessionId).entries.keys()].sort(),
    grants: () => [...current(sessionId).entries.values()].map(({ spec, value }) => ({ spec, value })),
    value: (name) => {
      const entry = current(sessionId).entries.get(name);
      return entry && usageOf(entry.spec).kind === 'session_tools' ? entry.value : undefined;
    },
  });

  /** Agents that pass inputs on learn of a change before the client is answered, so that a removed value is removed everywhere. */
  async function notifying(sessionId: string, change: () => JsonObject): Promise<JsonObject> {
    const before = current(sessionId).revision;
    const outcome = change();
    if (current(sessionId).revision !== before) {
      await Promise.all([...backends()].map((backend) => backend.inputsChanged?.(sessionId, view(sessionId))));
    }
    return outcome;
  }

  function list(sessionId: string): Json[] {
    return [...current(sessionId).entries.values()]
      .sort((a, b) => (a.spec.name < b.spec.name ? -1 : 1))
      .map((entry) => describe(entry));
  }

  return {
    async apply(actor, sessionId, command) {
      requireScope(actor, 'sessions:write');
      const session = await access.see<Session & Row>(actor, 'session', sessionId);
      if (session.state === 'CLOSED' || session.state === 'FAILED') {
        throw new Fault('conflict', `session ${session.id} is over`);
      }
      switch (command.kind) {
        case 'list':
          return { inputs: list(sessionId) };
        case 'remove':
          return await notifying(sessionId, () => remove(sessionId, command.name));
        case 'put':
          requireAgent(backends());
          return await notifying(sessionId, () => put(sessionId, command, command.replace ?? false));
        case 'sync':
          requireAgent(backends());
          return await notifying(sessionId, () => sync(sessionId, command));
      }
    },
    view,
    release: (sessionId) => sessions.delete(sessionId),
  };
}

/** Accepting a value that no agent can read would be a silent loss. */
function requireAgent(backends: Iterable<AgentBackend>): void {
  const all = [...backends];
  if (all.some(({ abilities }) => abilities.inputs)) return;
  const names = all.map(({ name }) => name).join(', ') || 'none is mounted';
  throw invalid(`no agent of this gateway takes private inputs (${names})`);
}

function checkedSpec(spec: InputSpec, nowMs: number): InputSpec {
  if (!NAME.test(spec.name)) {
    throw invalid('a name has letters, digits and underscores, no digit first, at most 128 characters', '/spec/name');
  }
  if (isExpired(spec, nowMs)) throw invalid('the expiry lies in the past', '/spec/lifetime');
  const usage = usageOf(spec);
  if (usage.kind !== 'websites') return spec;
  const origins = usage.origins.map(httpsOrigin);
  if (
    spec.kind === 'variable' ||
    origins.length === 0 ||
    origins.length > MOST_ORIGINS ||
    origins.includes(undefined)
  ) {
    throw invalid('a secret names 1 to 32 https websites: no path, no query, no credentials', '/spec/usage');
  }
  return { ...spec, usage: { kind: 'websites', origins: [...new Set(origins as string[])].sort() } };
}

function httpsOrigin(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, username, password, search, hash, pathname, origin } = new URL(text);
  const bare = username === '' && password === '' && search === '' && hash === '' && pathname === '/';
  return protocol === 'https:' && bare && !hostname.includes('*') ? origin : undefined;
}

function isExpired({ lifetime }: InputSpec, nowMs: number): boolean {
  return lifetime?.kind === 'until' && lifetime.unix_ms <= nowMs;
}

function usageOf({ usage }: InputSpec): NonNullable<InputSpec['usage']> {
  return usage ?? { kind: 'session_tools' };
}

function sizeOf(entries: ReadonlyMap<string, Entry>): number {
  let size = 0;
  for (const { value } of entries.values()) size += Buffer.byteLength(value);
  return size;
}

function describe({ spec, value }: InputGrant): InputDescription & JsonObject {
  const { name, kind = 'secret', lifetime = { kind: 'session' } } = spec;
  const description = { name, kind, lifetime, usage: usageOf(spec) };
  return (kind === 'variable' ? { ...description, value } : description) as InputDescription & JsonObject;
}

function invalid(why: string, param?: string): Fault {
  return new Fault('invalid_request', why, param ? { param } : {});
}
