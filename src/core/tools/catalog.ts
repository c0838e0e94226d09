/** The catalog of mounted tools: the server of each, its effect, and the hash of its definition. */
import type { Action, Actor, ToolResult } from '../../model/actions.ts';
import type { MountedTool, ProposedAction } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { mostOf } from '../../model/values/most-of.ts';
import type { Effect } from '../../model/words.ts';
import type {
  InspectContent,
  Logger,
  PassedRequest,
  ReferenceOf,
  RequestContext,
  ToolBackend,
  ToolServerState,
  UnlistedCall,
} from '../../ports/index.ts';
import { createServerLists, NONE } from './server-lists.ts';
import { ownDefinition } from './upstream-definition.ts';

/** How much longer a call waits for servers that have not answered, when no other has its tool. */
const STARTING_MS = 5_000;

/** A tool with the server that runs it. Doors are handed these too: none of its members reaches the server. */
export class FoundTool implements MountedTool {
  readonly #backend: ToolBackend;
  readonly skill: Skill;
  readonly definition: string;
  readonly effect: Effect;
  readonly pinned: boolean;
  /** See `ToolBackend`. */
  readonly answersMissing: boolean;

  constructor(backend: ToolBackend, skill: Skill, definition: string) {
    this.#backend = backend;
    this.skill = skill;
    this.definition = definition;
    this.effect = backend.effect?.(skill.name) ?? 'unknown';
    this.pinned = backend.pinned ?? false;
    this.answersMissing = backend.answersMissing ?? false;
  }

  get server(): string {
    return this.#backend.name;
  }

  attributes(sessionId: string): Action['attributes'] {
    return this.#backend.attributes?.(this.skill.name, sessionId);
  }

  static isOf(found: FoundTool, backend: ToolBackend | undefined): boolean {
    return found.#backend === backend;
  }

  static run(
    found: FoundTool,
    action: Action,
    signal: AbortSignal,
    context?: RequestContext,
    reference?: ReferenceOf,
  ): Promise<ToolResult> {
    return found.#backend.call(action, signal, context, reference);
  }
}

/** Where a server is used with each caller's own credentials, every answer is about this caller's. */
export interface Tools {
  /** All mounted tools, as far as they are known. The same array as long as nothing changes. */
  list(actor: Actor): Promise<readonly Skill[]>;
  /** A tool as last listed, without asking its server: for questions about which tools there are, never for an act. */
  lastListed(actor: Actor, tool: string, server: string): FoundTool | undefined;
  states(actor: Actor): readonly ToolServerState[];
  /** The server has said something: it is asked at once, however often it failed before. */
  again(server: string): void;
  /** By name, and by server when two serve the same name. Undefined when no server has it, at least in this session. */
  find(actor: Actor, tool: string, server?: string, sessionId?: string): Promise<FoundTool | undefined>;
  /** The tool that a door has looked up, where it is the one this act names and still mounted; otherwise undefined. */
  known(
    actor: Actor,
    tool: MountedTool | undefined,
    act: Pick<ProposedAction, 'tool' | 'server'>,
  ): FoundTool | undefined;
  /** A tool that its server does not list, where the server can be called for one. */
  unlisted(actor: Actor, call: { readonly tool: string; readonly server: string }): UnlistedTool | undefined;
  /** Forwards a request in the server's own protocol. */
  pass(
    actor: Actor,
    server: string,
    request: PassedRequest,
    signal: AbortSignal,
    context?: RequestContext,
    inspect?: InspectContent,
  ): Promise<JsonObject>;
  /** Whether the answer to this request may hold untrusted content. */
  taints(server: string, request: PassedRequest): boolean;
  /** Throws for a server that is not mounted, or that accepts only calls. */
  requirePassing(server: string): void;
}

export interface UnlistedTool {
  readonly run: UnlistedCall;
  attributes(sessionId: string): Action['attributes'];
}

/** `backends` is called anew each time: the mounted backends may change. */
export function createTools(
  backends: () => readonly ToolBackend[],
  hash: (value: Json) => string,
  /** Reports servers that do not answer. */
  logger: Logger = { info() {}, warn() {}, error() {} },
): Tools {
  const servers = createServerLists(logger);
  const hashes = new WeakMap<Skill, string>();
  let listed: Listing | undefined;
  /** The lists of callers with backends of their own, by the first of these. */
  const listedFor = new WeakMap<ToolBackend, Listing>();
  /** Index by name of a server's current list: every call looks one up. */
  const indexes = new WeakMap<readonly Skill[], ReadonlyMap<string, Skill>>();

  const ownOf = (backend: ToolBackend, actor: Actor) => backend.forCaller?.(actor) ?? backend;
  const backendsOf = (actor: Actor) => backends().map((backend) => ownOf(backend, actor));
  const serverOf = (server: string, actor: Actor) => {
    const mounted = backends().find(({ name }) => name === server);
    return mounted && ownOf(mounted, actor);
  };

  function named(skills: readonly Skill[], tool: string): Skill | undefined {
    let index = indexes.get(skills);
    if (!index) {
      index = new Map(skills.toReversed().map((skill) => [skill.name, skill]));
      indexes.set(skills, index);
    }
    return index.get(tool);
  }

  /** Hashes everything a person would read before approving. A change to any of it makes another tool. */
  function definition(skill: Skill): string {
    const known = hashes.get(skill);
    if (known) return known;
    const { input_schema, output_schema, metadata } = skill;
    const fresh = hash({
      ...ownDefinition(skill),
      input_schema,
      output_schema,
      annotations: metadata.annotations ?? null,
    });
    hashes.set(skill, fresh);
    return fresh;
  }

  function passing(backend: ToolBackend | undefined, server: string): NonNullable<ToolBackend['pass']> {
    if (!backend?.pass) throw new Fault('not_found', `no server ${server} takes such requests`);
    return backend.pass.bind(backend);
  }

  return {
    async list(actor) {
      const mounted = backendsOf(actor);
      const shared = backends();
      const own = mounted.find((backend) => !shared.includes(backend));
      const lists = await servers.all(mounted);
      const before = own ? listedFor.get(own) : listed;
      if (before && sameLists(before, { mounted, lists })) return before.all;
      const all = mounted.flatMap(({ name: source }, at) => (lists[at] ?? NONE).map((skill) => ({ ...skill, source })));
      if (own) listedFor.set(own, { mounted, lists, all });
      else listed = { mounted, lists, all };
      return all;
    },
    lastListed(actor, tool, server) {
      const backend = serverOf(server, actor);
      const skill = backend && named(servers.known(backend), tool);
      return skill && new FoundTool(backend, skill, definition(skill));
    },
    unlisted(actor, { tool, server }) {
      const backend = serverOf(server, actor);
      const run = backend?.unlisted?.(tool);
      return run && { run, attributes: (sessionId) => backend?.attributes?.(tool, sessionId) };
    },
    states: (actor) => servers.states(backendsOf(actor)),
    again: (server) => servers.again(backends().filter(({ name }) => name === server)),
    async pass(actor, server, request, signal, context, inspect) {
      return await passing(serverOf(server, actor), server)(request, signal, context, inspect);
    },
    taints: (server, request) =>
      backends()
        .find(({ name }) => name === server)
        ?.taints?.(request) ?? false,
    requirePassing: (server) =>
      void passing(
        backends().find(({ name }) => name === server),
        server,
      ),
    known(actor, tool, act) {
      if (!(tool instanceof FoundTool) || tool.skill.name !== act.tool || tool.server !== act.server) return undefined;
      return FoundTool.isOf(tool, serverOf(tool.server, actor)) ? tool : undefined;
    },
    async find(actor, tool, server, sessionId) {
      if (server) return await findAt(serverOf(server, actor), tool, sessionId);
      const asked = backendsOf(actor);
      const lists = new Map<ToolBackend, readonly Skill[]>();
      let cause: unknown;
      const answers = asked.map(async (backend) => {
        try {
          lists.set(backend, await backend.list(sessionId));
        } catch (thrown) {
          cause = thrown;
        }
      });
      const matching = () =>
        asked.flatMap((backend) => {
          const skill = named(lists.get(backend) ?? NONE, tool);
          return skill ? [{ backend, skill }] : [];
        });
      // One that hangs does not hold up the others.
      await mostOf(answers);
      // The tool may be at one that is still starting, and nothing else can answer the call.
      if (matching().length === 0) await mostOf(answers, STARTING_MS);
      const found = matching();
      if (found.length > 1) {
        const names = found.map(({ backend }) => backend.name).join(' and ');
        throw new Fault('invalid_request', `${names} both serve ${tool}; name the server`, { param: '/action/server' });
      }
      const [only] = found;
      // A server that does not answer may have the tool: that differs from no server having it.
      const silent = only ? undefined : asked.find((backend) => !lists.has(backend));
      if (silent) throw unlisted(silent, cause);
      return only && new FoundTool(only.backend, only.skill, definition(only.skill));
    },
  };

  async function findAt(backend: ToolBackend | undefined, tool: string, sessionId: string | undefined) {
    if (!backend) return undefined;
    let skills: readonly Skill[];
    try {
      skills = await backend.list(sessionId);
    } catch (cause) {
      throw unlisted(backend, cause);
    }
    const skill = named(skills, tool);
    if (!skill) await backend.requireListed?.(tool);
    return skill && new FoundTool(backend, skill, definition(skill));
  }
}

function unlisted(server: ToolBackend, cause: unknown): Fault {
  // The caller can do something about credentials of its own.
  if (cause instanceof Fault && cause.kind === 'permission_denied') return cause;
  return new Fault('upstream_unavailable', `${server.name} does not say which tools it has`, { cause });
}

/** The servers that were asked, and the list each returned. */
interface Listed {
  readonly mounted: readonly ToolBackend[];
  readonly lists: readonly (readonly Skill[])[];
}
type Listing = Listed & { readonly all: readonly Skill[] };

/** A returned list is never mutated, so the same array means the same tools; an empty list equals any empty list. */
function sameLists(before: Listed, now: Listed): boolean {
  return (
    before.mounted.length === now.mounted.length &&
    now.mounted.every((server, at) => {
      const [was, is] = [before.lists[at] ?? NONE, now.lists[at] ?? NONE];
      return server === before.mounted[at] && (was === is || (was.length === 0 && is.length === 0));
    })
  );
}
