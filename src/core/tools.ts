/** The tools mounted behind the bridge: who serves which, what it does to the world, and the hash of its definition. */
import type { Action, ToolResult } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import type { Skill } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Effect } from '../model/words.ts';
import type { Line, PassedRequest, ToolBackend } from '../ports.ts';

export interface FoundTool {
  readonly server: string;
  readonly skill: Skill;
  readonly definition: string;
  readonly effect: Effect;
  readonly pinned: boolean;
  attributes(sessionId: string): Action['attributes'];
  call(action: Action, signal: AbortSignal, line?: Line): Promise<ToolResult>;
}
export interface Tools {
  /** Everything on offer; a server that cannot be asked is left out. The same list for as long as nobody says anything else. */
  list(): Promise<readonly Skill[]>;
  /** By name, and by server when two serve the same name. Undefined when nobody does, in this session at least. */
  find(tool: string, server?: string, sessionId?: string): Promise<FoundTool | undefined>;
  /** A request of its own protocol, to one server. */
  pass(server: string, request: PassedRequest, signal: AbortSignal, line?: Line): Promise<JsonObject>;
  /** Whether what this request is answered with may hold what others wrote. */
  taints(server: string, request: PassedRequest): boolean;
  /** Refuses a server that is not there, or takes nothing but calls. */
  requirePassing(server: string): void;
}

/** `backends` is asked anew each time: what is mounted may change. */
export function createTools(backends: () => readonly ToolBackend[], hash: (value: Json) => string): Tools {
  const hashes = new WeakMap<Skill, string>();
  let listed: (Told & { readonly all: readonly Skill[] }) | undefined;
  /** Of a list a server keeps to, by name: every call looks for one of them. */
  const indexes = new WeakMap<readonly Skill[], ReadonlyMap<string, Skill>>();

  function named(skills: readonly Skill[], tool: string): Skill | undefined {
    const index = indexes.get(skills) ?? new Map(skills.toReversed().map((skill) => [skill.name, skill]));
    indexes.set(skills, index);
    return index.get(tool);
  }

  /** Everything a person would read before saying yes. A change to any of it is another tool. */
  function definition(skill: Skill): string {
    const known = hashes.get(skill);
    if (known) return known;
    const { name, description, input_schema, output_schema, metadata } = skill;
    const fresh = hash({
      name,
      description,
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
      const told = await Promise.all(servers.map((backend) => backend.list().catch(() => NONE)));
      if (listed && saysTheSame(listed, { servers, told })) return listed.all;
      const all = servers.flatMap(({ name: source }, at) => (told[at] ?? NONE).map((skill) => ({ ...skill, source })));
      listed = { servers, told, all };
      return all;
    },
    async pass(server, request, signal, line) {
      return await passing(server)(request, signal, line);
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
      // One that does not answer may have it: that is not the same as nobody having it.
      if (!only && silent) throw silent;
      if (!only) return undefined;
      const { backend, skill } = only;
      return {
        server: backend.name,
        skill,
        definition: definition(skill),
        effect: backend.effect?.(tool) ?? 'unknown',
        pinned: backend.pinned ?? false,
        attributes: (sessionId) => backend.attributes?.(tool, sessionId),
        call: (action, signal, line) => backend.call(action, signal, line),
      };
    },
  };
}

const NONE: readonly Skill[] = [];

/** Who was asked, and what each said. */
interface Told {
  readonly servers: readonly ToolBackend[];
  readonly told: readonly (readonly Skill[])[];
}

/** A list that was given is never changed, so the same one says the same; and none is like another none. */
function saysTheSame(before: Told, now: Told): boolean {
  return (
    before.servers.length === now.servers.length &&
    now.servers.every((server, at) => {
      const [was, is] = [before.told[at] ?? NONE, now.told[at] ?? NONE];
      return server === before.servers[at] && (was === is || (was.length === 0 && is.length === 0));
    })
  );
}
