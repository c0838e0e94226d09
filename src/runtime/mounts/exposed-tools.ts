/**
 * A tool server as the configuration exposes it: only the allowed tools, under the names and descriptions it gives them. The server
 * stands behind this for every door, so what is not exposed cannot be found, listed or called anywhere.
 */
import { boundedResult, excess, RESULT_LIMITS } from '../../core/actions/calls/result-size.ts';
import { reworded } from '../../core/tools/upstream-definition.ts';
import { Fault } from '../../model/faults.ts';
import type { Skill } from '../../model/resources.ts';
import { own } from '../../model/values/own.ts';
import { matchesGlob } from '../../policy/rules/glob.ts';
import { type ToolBackend, wrapTools } from '../../ports/index.ts';
import { type ExposeConfig, limitsOf } from '../config/expose.ts';

export function exposedTools(backend: ToolBackend, config: ExposeConfig | undefined): ToolBackend {
  return config ? wrapTools(backend, (one) => exposing(one, config)) : backend;
}

function exposing(backend: ToolBackend, config: ExposeConfig): ToolBackend {
  const { allow, rename = {}, describe = {}, max_result: most } = config;
  const limits = limitsOf(config);
  const ownNames = new Map(Object.entries(rename).map(([from, to]) => [to, from]));
  /** Lists are never mutated, so the same array is exposed as the same array. */
  const lists = new WeakMap<readonly Skill[], readonly Skill[]>();
  const shown = new WeakMap<Skill, Skill>();

  /** Tools of the gateway that stand in the list of a server, such as its sign-in: what is exposed of the server is not about them. */
  const gateways = new Set<string>();
  const isGateways = (skill: Skill) => skill.metadata.gateway === true;

  const isAllowed = (tool: string) => allow?.some((glob) => matchesGlob(glob, tool)) ?? true;

  function one(skill: Skill): Skill {
    const { name, description } = skill;
    const said = { name: own(rename, name) ?? name, description: own(describe, name) ?? description };
    if (said.name === name && said.description === description) return skill;
    const known = shown.get(skill) ?? reworded(skill, said);
    shown.set(skill, known);
    return known;
  }

  function exposed(skills: readonly Skill[]): readonly Skill[] {
    const known = lists.get(skills);
    if (known) return known;
    for (const skill of skills) if (isGateways(skill)) gateways.add(skill.name);
    const all = skills.flatMap((skill) => (isGateways(skill) ? [skill] : isAllowed(skill.name) ? [one(skill)] : []));
    const counts = new Map<string, number>();
    for (const { name } of all) counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1);
    // Two tools of one name are told apart by nobody: neither is exposed.
    const made = all.filter(({ name }) => counts.get(name.toLowerCase()) === 1);
    lists.set(skills, made);
    return made;
  }

  /** The server's own name of a tool. A name that was given away no longer means the tool that has it there. */
  const ownName = (tool: string) => ownNames.get(tool) ?? tool;

  // Its tools have other names here, or none: a name that is not exposed must not reach what it means there.
  const { unlisted: _, ...listed } = backend;
  return {
    ...listed,
    get name() {
      return backend.name;
    },
    get pinned() {
      return backend.pinned ?? false;
    },
    list: async (sessionId) => exposed(await backend.list(sessionId)),
    effect: (tool) => backend.effect?.(ownName(tool)),
    attributes(tool, sessionId) {
      const about = backend.attributes?.(ownName(tool), sessionId) ?? {};
      // Recorded with the decision, so that the log has both names; rules can match it.
      return ownName(tool) === tool ? about : { ...about, own_name: ownName(tool) };
    },
    limit: (tool) => limits.find(({ tools }) => matchesGlob(tools, ownName(tool))),
    async call(action, signal, context, reference) {
      const tool = ownName(action.tool ?? '');
      if (!isAllowed(tool) && !gateways.has(tool)) throw new Error(`${tool} is not exposed`);
      const result = await backend.call(
        tool === action.tool ? action : { ...action, tool },
        signal,
        context,
        reference,
      );
      return most === undefined ? result : boundedResult(result, { ...RESULT_LIMITS, size: most });
    },
    ...(backend.pass &&
      most !== undefined && {
        async pass(request, signal, context, inspect) {
          return await (backend.pass as NonNullable<typeof backend.pass>)(
            request,
            signal,
            context,
            async (content, of) => {
              const over = of === 'call' && excess(content, { ...RESULT_LIMITS, size: most });
              if (over)
                throw new Fault(
                  'payload_too_large',
                  `the call ran, and its result was not passed on: it holds ${over}`,
                );
              return inspect ? await inspect(content, of) : content;
            },
          );
        },
      }),
  } satisfies ToolBackend;
}
