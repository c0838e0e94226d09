/** The catalog of mounted tools: the server of each, its effect, and the hash of its definition. */
import type { Action, ToolResult } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { ownDefinition } from '../../model/upstream-definition.ts';
import type { Effect } from '../../model/words.ts';
import type { PassedRequest, ReferenceOf, RequestContext, ToolBackend } from '../../ports/index.ts';

export interface FoundTool {
  readonly server: string;
  readonly skill: Skill;
  readonly definition: string;
  readonly effect: Effect;
  readonly pinned: boolean;
  attributes(sessionId: string): Action['attributes'];
  call(action: Action, signal: AbortSignal, context?: RequestContext, reference?: ReferenceOf): Promise<ToolResult>;
}
export interface Tools {
  /** All mounted tools; a server that does not answer is left out. The same array as long as nothing changes. */
  list(): Promise<readonly Skill[]>;
  /** By name, and by server when two serve the same name. Undefined when no server has it, at least in this session. */
  find(tool: string, server?: string, sessionId?: string): Promise<FoundTool | undefined>;
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

  /** The last result by definition: every call looks it up at least twice, and it is the same unless something changed. */
  const finds = new WeakMap<Skill, { readonly backend: ToolBackend; readonly tool: FoundTool }>();

  function foundTool(backend: ToolBackend, skill: Skill): FoundTool {
    const { name: tool } = skill;
    const effect = backend.effect?.(tool) ?? 'unknown';
    const pinned = backend.pinned ?? false;
    const known = finds.get(skill);
    if (known?.backend === backend && known.tool.effect === effect && known.tool.pinned === pinned) return known.tool;
    const found: FoundTool = {
      server: backend.name,
      skill,
      definition: definition(skill),
      effect,
      pinned,
      attributes: (sessionId) => backend.attributes?.(tool, sessionId),
      call: (action, signal, context, reference) => backend.call(action, signal, context, reference),
    };
    finds.set(skill, { backend, tool: found });
    return found;
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
      return only && foundTool(only.backend, only.skill);
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
