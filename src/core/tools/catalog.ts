/** The catalog of mounted tools: the server of each, its effect, and the hash of its definition. */
import type { Action, ToolResult } from '../../model/actions.ts';
import type { MountedTool, ProposedAction } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { mostOf } from '../../model/values/most-of.ts';
import type { Effect } from '../../model/words.ts';
import type {
  Logger,
  PassedRequest,
  ReferenceOf,
  RequestContext,
  ToolBackend,
  ToolServerState,
} from '../../ports/index.ts';
import { createServerLists, NONE } from './server-lists.ts';
import { ownDefinition } from './upstream-definition.ts';

/** A tool with the server that runs it. Doors are handed these too: none of its members reaches the server. */
export class FoundTool implements MountedTool {
  readonly #backend: ToolBackend;
  readonly skill: Skill;
  readonly definition: string;
  readonly effect: Effect;
  readonly pinned: boolean;

  constructor(backend: ToolBackend, skill: Skill, definition: string) {
    this.#backend = backend;
    this.skill = skill;
    this.definition = definition;
    this.effect = backend.effect?.(skill.name) ?? 'unknown';
    this.pinned = backend.pinned ?? false;
  }

  get server(): string {
    return this.#backend.name;
  }

  attributes(sessionId: string): Action['attributes'] {
    return this.#backend.attributes?.(this.skill.name, sessionId);
  }

  static isOf(found: FoundTool, backends: readonly ToolBackend[]): boolean {
    return backends.includes(found.#backend);
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

export interface Tools {
  /** All mounted tools, as far as they are known. The same array as long as nothing changes. */
  list(): Promise<readonly Skill[]>;
  /** A tool as last listed, without asking its server: for questions about which tools there are, never for an act. */
  lastListed(tool: string, server: string): FoundTool | undefined;
  states(): readonly ToolServerState[];
  /** The server has said something: it is asked at once, however often it failed before. */
  again(server: string): void;
  /** By name, and by server when two serve the same name. Undefined when no server has it, at least in this session. */
  find(tool: string, server?: string, sessionId?: string): Promise<FoundTool | undefined>;
  /** The tool that a door has looked up, where it is the one this act names and still mounted; otherwise undefined. */
  known(tool: MountedTool | undefined, act: Pick<ProposedAction, 'tool' | 'server'>): FoundTool | undefined;
  /** Forwards a request in the server's own protocol. */
  pass(server: string, request: PassedRequest, signal: AbortSignal, context?: RequestContext): Promise<JsonObject>;
  /** Whether the answer to this request may hold untrusted content. */
  taints(server: string, request: PassedRequest): boolean;
  /** Throws for a server that is not mounted, or that accepts only calls. */
  requirePassing(server: string): void;
}

/** `backends` is called anew each time: the mounted backends may change. */
export function createTools(
  backends: () => readonly ToolBackend[],
  hash: (value: Json) => string,
  /** Reports servers that do not answer. */
  logger: Logger = { info() {}, warn() {}, error() {} },
): Tools {
  const servers = createServerLists(backends, logger);
  const hashes = new WeakMap<Skill, string>();
  let listed: (Listed & { readonly all: readonly Skill[] }) | undefined;
  /** Index by name of a server's current list: every call looks one up. */
  const indexes = new WeakMap<readonly Skill[], ReadonlyMap<string, Skill>>();

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

  function passing(server: string): NonNullable<ToolBackend['pass']> {
    const backend = backends().find(({ name }) => name === server);
    if (!backend?.pass) throw new Fault('not_found', `no server ${server} takes such requests`);
    return backend.pass.bind(backend);
  }

  return {
    async list() {
      const mounted = [...backends()];
      const lists = await servers.all();
      if (listed && sameLists(listed, { mounted, lists })) return listed.all;
      const all = mounted.flatMap(({ name: source }, at) => (lists[at] ?? NONE).map((skill) => ({ ...skill, source })));
      listed = { mounted, lists, all };
      return all;
    },
    lastListed(tool, server) {
      const backend = backends().find(({ name }) => name === server);
      const skill = backend && named(servers.known(backend), tool);
      return skill && new FoundTool(backend, skill, definition(skill));
    },
    states: servers.states,
    again: servers.again,
    async pass(server, request, signal, context) {
      return await passing(server)(request, signal, context);
    },
    taints: (server, request) =>
      backends()
        .find(({ name }) => name === server)
        ?.taints?.(request) ?? false,
    requirePassing: (server) => void passing(server),
    known(tool, act) {
      if (!(tool instanceof FoundTool) || tool.skill.name !== act.tool) return undefined;
      return tool.server === act.server && FoundTool.isOf(tool, backends()) ? tool : undefined;
    },
    async find(tool, server, sessionId) {
      const asked = backends().filter(({ name }) => !server || name === server);
      const lists = new Map<ToolBackend, readonly Skill[]>();
      let cause: unknown;
      const answers = asked.map(async (backend) => {
        try {
          lists.set(backend, await backend.list(sessionId));
        } catch (thrown) {
          cause = thrown;
        }
      });
      // Where the server is not named, one that hangs does not hold up the others.
      await (server ? Promise.all(answers) : mostOf(answers));
      const found = asked.flatMap((backend) => {
        const skill = named(lists.get(backend) ?? NONE, tool);
        return skill ? [{ backend, skill }] : [];
      });
      if (found.length > 1) {
        const names = found.map(({ backend }) => backend.name).join(' and ');
        throw new Fault('invalid_request', `${names} both serve ${tool}; name the server`, { param: '/action/server' });
      }
      const [only] = found;
      // A server that does not answer may have the tool: that differs from no server having it.
      const silent = only ? undefined : asked.find((backend) => !lists.has(backend));
      if (silent) throw new Fault('upstream_unavailable', `${silent.name} does not say which tools it has`, { cause });
      return only && new FoundTool(only.backend, only.skill, definition(only.skill));
    },
  };
}

/** The servers that were asked, and the list each returned. */
interface Listed {
  readonly mounted: readonly ToolBackend[];
  readonly lists: readonly (readonly Skill[])[];
}

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
