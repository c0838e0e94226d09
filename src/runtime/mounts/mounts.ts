/**
 * The sections of the configuration, each checked against its adapter's own schema: the adapter's door, and the agents,
 * tools and harnesses reached through it. Composition, no logic; nothing is opened here.
 */

import { Fault } from '../../model/faults.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { TSchema } from '../../model/type.ts';
import { own } from '../../model/values/own.ts';
import { noSuch } from '../../policy/rules/mentions.ts';
import { createToolPolicy } from '../../policy/tool-policy.ts';
import type {
  Adapter,
  AdapterPart,
  AgentBackend,
  AgentTerms,
  Deps,
  FrontDoor,
  PolicyEngine,
  ToolBackend,
} from '../../ports/index.ts';
import type { Config } from '../config/config.ts';
import { checkSection, openAt, wrong } from '../config/document.ts';
import { hidingEnvironment } from '../config/environment.ts';
import { EXPOSE, type ExposeConfig, exposeSchema } from '../config/expose.ts';
import { exposedTools } from './exposed-tools.ts';

export interface DoorOpening {
  /** The adapter's name. */
  readonly name: string;
  /** Its section, checked; empty when there is none. */
  readonly section: object;
  /** The configuration says `false`: it stays shut. */
  readonly shut: boolean;
  open(deps: Deps): FrontDoor;
}

/** A part to be opened once the runtime has its dependencies. */
export interface PartOpening<T> {
  /** `agents.far`: its path in the configuration. */
  readonly at: string;
  /** Its section as text, to tell whether it is unchanged. */
  readonly said: string;
  open(deps: Deps): T;
}

export interface Mounts {
  readonly doors: readonly DoorOpening[];
  readonly agents: readonly PartOpening<AgentBackend>[];
  readonly tools: readonly PartOpening<ToolBackend>[];
  readonly harnesses: readonly PartOpening<PolicyEngine>[];
  /** By agent. */
  readonly terms: ReadonlyMap<string, AgentTerms>;
}

type Adapters = readonly Adapter[];

export function mountsOf(config: Config, adapters: Adapters): Mounts {
  try {
    return checkedMounts(config, adapters);
  } catch (thrown) {
    throw hidingEnvironment(thrown, config.environment);
  }
}

function checkedMounts(config: Config, adapters: Adapters): Mounts {
  const { where } = config;
  requireRelays(config, adapters);
  requireAgents(config);
  return {
    doors: doorsOf(config, adapters),
    agents: partsOf('agents', config.agents, partsIn(adapters, 'backend'), where),
    tools: toolsOf(config, partsIn(adapters, 'tools')),
    harnesses: [...partsOf('harnesses', config.harnesses, partsIn(adapters, 'policy'), where), ...toolPolicyOf(config)],
    terms: config.agentTerms,
  };
}

/** Names of the built-in agents. */
export const BUILT_IN = ['demo', 'second'];

/** Work for an agent that does not exist would otherwise fail one task at a time. */
function requireAgents({ agents, demo, defaultAgent, doors, personas, where }: Config): void {
  const known = [...Object.keys(agents), ...(demo ? BUILT_IN : [])];
  const wanted = [
    ...(defaultAgent === undefined ? [] : [{ name: defaultAgent, at: ['default_agent'] }]),
    ...Object.entries(personas).flatMap(([persona, { agent }]) =>
      agent === undefined ? [] : [{ name: agent, at: ['personas', persona, 'agent'] }],
    ),
    ...Object.entries(doors).flatMap(([door, section]) =>
      section && typeof section.agent === 'string' ? [{ name: section.agent, at: ['doors', door, 'agent'] }] : [],
    ),
  ];
  const odd = wanted.find(({ name }) => !known.includes(name));
  if (odd) throw wrong(where(odd.at), noSuch('agent', odd.name, known));
}

function doorsOf({ doors, where }: Config, adapters: Adapters): readonly DoorOpening[] {
  const parts = partsIn(adapters, 'door');
  const unknown = Object.keys(doors).find((name) => !parts.has(name));
  if (unknown) {
    const there = [...parts.keys()].join(', ');
    throw new Fault(
      'invalid_request',
      `${where(['doors', unknown], true)}: there is no door ${unknown}; there are: ${there}`,
    );
  }
  return [...parts].map(([name, part]) => {
    const value = own(doors, name);
    const at = ['doors', name];
    const section = checkSection(part.configSchema as TSchema, value || {}, where, at) as object;
    const open = (deps: Deps) => openAt(() => part.open(section as never, { ...deps, name }), where, at);
    return { name, section, shut: value === false, open };
  });
}

/**
 * Only the relay commands use these sections; checking them here reports a mistake at the first start of any process.
 */
function requireRelays(config: Config, adapters: Adapters): void {
  const parts = partsIn(adapters, 'relay');
  const unknown = Object.keys(config.relays).find((name) => !parts.has(name));
  if (unknown) {
    const names = [...parts.keys()].join(', ');
    throw new Fault(
      'invalid_request',
      `${config.where(['relays', unknown])}: there is no relay ${unknown}; there are: ${names}`,
    );
  }
  for (const [name, part] of parts) relaySection(config, name, part);
}

/** The checked section of one relay; empty when there is none. */
export function relaySection<C>({ relays, where }: Config, name: string, { configSchema }: AdapterPart<unknown, C>): C {
  return checkSection(configSchema as TSchema, own(relays, name) ?? {}, where, ['relays', name]) as C;
}

function partsIn<K extends keyof Adapter['parts']>(adapters: Adapters, role: K) {
  return new Map(
    adapters.flatMap(({ name, parts: { [role]: part } }) =>
      part ? [[name, part as NonNullable<Adapter['parts'][K]>] as const] : [],
    ),
  );
}

/** Servers behind what the configuration exposes of them. One that clients start themselves is mounted by its own command. */
function toolsOf({ tools, where }: Config, parts: ReadonlyMap<string, AdapterPart<ToolBackend>>) {
  const exposed = exposedOf({ tools, where });
  const sections = Object.entries(tools).flatMap(([name, { [EXPOSE]: expose, ...section }]) =>
    expose !== undefined && Object.keys(section).length === 0 ? [] : [[name, section] as const],
  );
  return partsOf('tools', Object.fromEntries(sections), parts, where).map((opening): PartOpening<ToolBackend> => {
    const expose = exposed.get(opening.at.slice('tools.'.length));
    if (!expose) return opening;
    const said = JSON.stringify([opening.said, expose]);
    return { ...opening, said, open: (deps) => exposedTools(opening.open(deps), expose) };
  });
}

/** What is exposed of each server that the configuration says something about. */
export function exposedOf({ tools, where }: Pick<Config, 'tools' | 'where'>): ReadonlyMap<string, ExposeConfig> {
  return new Map(
    Object.entries(tools).flatMap(([name, section]) => {
      const expose = own(section, EXPOSE);
      if (expose === undefined) return [];
      return [[name, checkSection(exposeSchema, expose, where, ['tools', name, EXPOSE]) as ExposeConfig] as const];
    }),
  );
}

/** Bundles and rules on results, as one engine; none where the configuration has neither. */
export function toolPolicyOf(config: Config): readonly PartOpening<PolicyEngine>[] {
  const bundles = Object.entries(config.bundles).map(([name, { tools, personas = [], principals = [] }]) => ({
    name,
    tools,
    personas,
    principals,
  }));
  const results = [...exposedOf(config)].flatMap(([server, { results = [] }]) =>
    results.map((rule) => ({ ...rule, server })),
  );
  if (bundles.length + results.length === 0) return [];
  const said = JSON.stringify([bundles, results]);
  return [{ at: 'bundles', said, open: () => createToolPolicy(bundles, results) }];
}

/** Each name has one section, called after the protocol spoken with it. */
function partsOf<T>(
  kind: string,
  wanted: Readonly<Record<string, JsonObject>>,
  parts: ReadonlyMap<string, AdapterPart<T>>,
  where: Config['where'],
): readonly PartOpening<T>[] {
  return Object.entries(wanted).map(([name, member]) => {
    const protocols = Object.keys(member);
    const [protocol = ''] = protocols;
    const part = parts.get(protocol);
    if (!part || protocols.length > 1) {
      const position = where([kind, name, ...(protocols.length === 1 ? [protocol] : [])]);
      throw new Fault(
        'invalid_request',
        `${position}: ${kind}.${name} needs one section, named after the protocol spoken with it: ${[...parts.keys()].join(', ')}`,
      );
    }
    const at = [kind, name, protocol];
    const section = checkSection(part.configSchema as TSchema, member[protocol], where, at);
    return {
      at: `${kind}.${name}`,
      said: JSON.stringify(member),
      open: (deps) => openAt(() => part.open(section as never, { ...deps, name }), where, at),
    };
  });
}
