/** The catalog of mounted tools: the server of each, its effect, and the hash of its definition. */
import type { Action, ToolResult } from '../../model/actions.ts';
import type { MountedTool, ProposedAction } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { Effect } from '../../model/words.ts';
import type { PassedRequest, ReferenceOf, RequestContext, ToolBackend } from '../../ports/index.ts';
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
  /** All mounted tools; a server that does not answer is left out. The same array as long as nothing changes. */
  list(): Promise<readonly Skill[]>;
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
export function createTools(backends: () => readonly ToolBackend[], hash: (value: Json) => string): Tools {
  const hashes = new WeakMap<Skill, string>();
  let listed: (ServerLists & { readonly all: readonly Skill[] }) | undefined;
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
      const servers = [...backends()];
      const lists = await Promise.all(servers.map((backend) => backend.list().catch(() => NONE)));
      if (listed && sameLists(listed, { servers, lists })) return listed.all;
      const all = servers.flatMap(({ name: source }, at) => (lists[at] ?? NONE).map((skill) => ({ ...skill, source })));
      listed = { servers, lists, all };
      return all;
    },
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
      const found: { backend: ToolBackend; skill: Skill }[] = [];
      let silent: Fault | undefined;
      for (const backend of backends()) {
        if (server && backend.name !== server) continue;
        let skills = NONE;
        try {
          skills = await backend.list(sessionId);
        } catch (cause) {
          silent = new Fault('upstream_unavailable', `${backend.name} does not say which tools it has`, { cause });
        }
        const skill = named(skills, tool);
        if (skill) found.push({ backend, skill });
      }
      if (found.length > 1) {
        const names = found.map(({ backend }) => backend.name).join(' and ');
        throw new Fault('invalid_request', `${names} both serve ${tool}; name the server`, { param: '/action/server' });
      }
      const [only] = found;
      // A server that does not answer may have the tool: that differs from no server having it.
      if (!only && silent) throw silent;
      return only && new FoundTool(only.backend, only.skill, definition(only.skill));
    },
  };
}

const NONE: readonly Skill[] = [];

/** The servers that were asked, and the list each returned. */
interface ServerLists {
  readonly servers: readonly ToolBackend[];
  readonly lists: readonly (readonly Skill[])[];
}

/** A returned list is never mutated, so the same array means the same tools; an empty list equals any empty list. */
function sameLists(before: ServerLists, now: ServerLists): boolean {
  return (
    before.servers.length === now.servers.length &&
    now.servers.every((server, at) => {
      const [was, is] = [before.lists[at] ?? NONE, now.lists[at] ?? NONE];
      return server === before.servers[at] && (was === is || (was.length === 0 && is.length === 0));
    })
  );
}
