/**
 * What the configuration says to each adapter, held against that adapter's own schema: its door, and whatever agents,
 * tools and harnesses are reached through it. Composition, no logic; nothing is opened here.
 */

import type { Config } from './config.ts';
import { checkSection, openAt, wrong } from './config-document.ts';
import { hidingEnvironment } from './config-environment.ts';
import { Fault } from './model/faults.ts';
import { own } from './model/own.ts';
import type { JsonObject } from './model/schema.ts';
import type { TSchema } from './model/type.ts';
import { noSuch } from './policy/mentions.ts';
import type { Adapter, AgentBackend, Deps, Part, PolicyEngine, ToolBackend } from './ports.ts';

export interface Door {
  readonly adapter: Adapter<never>;
  /** Its section, checked; empty when there is none. */
  readonly section: never;
  /** Its door stays shut when the configuration says `false`. */
  readonly open: boolean;
}

/** Something to be opened once the house has what it needs. */
export interface Opening<T> {
  /** `agents.far`: where the configuration speaks of it. */
  readonly at: string;
  /** What is said there, to tell whether it is still the same. */
  readonly said: string;
  open(deps: Deps): T;
}

export interface Mounts {
  readonly doors: readonly Door[];
  readonly agents: readonly Opening<AgentBackend>[];
  readonly tools: readonly Opening<ToolBackend>[];
  readonly harnesses: readonly Opening<PolicyEngine>[];
}

type Adapters = readonly Adapter<never>[];

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
    agents: partsOf('agents', config.agents, partners(adapters, 'backend'), where),
    tools: partsOf('tools', config.tools, partners(adapters, 'tools'), where),
    harnesses: partsOf('harnesses', config.harnesses, partners(adapters, 'policy'), where),
  };
}

/** The built-in agents, by the names work can be given to them under. */
export const BUILT_IN = ['demo', 'second'];

/** Work that names an agent which is not there would fail one task at a time. */
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

function doorsOf({ doors, where }: Config, adapters: Adapters): readonly Door[] {
  const unknown = Object.keys(doors).find((name) => !adapters.some((adapter) => adapter.name === name));
  if (unknown) {
    const there = adapters.map(({ name }) => name).join(', ');
    throw new Fault(
      'invalid_request',
      `${where(['doors', unknown], true)}: there is no door ${unknown}; there are: ${there}`,
    );
  }
  return adapters.map((adapter) => {
    const { name, configSchema } = adapter;
    const given = own(doors, name);
    const section = checkSection(configSchema as TSchema, given || {}, where, ['doors', name]);
    return { adapter, section: section as never, open: given !== false };
  });
}

/** Nobody here reads them; a mistake in them is still told by whoever is started first. */
function requireRelays(config: Config, adapters: Adapters): void {
  const there = adapters.filter(({ relay }) => relay !== undefined);
  const unknown = Object.keys(config.relays).find((name) => !there.some((adapter) => adapter.name === name));
  if (unknown) {
    const names = there.map(({ name }) => name).join(', ');
    throw new Fault(
      'invalid_request',
      `${config.where(['relays', unknown])}: there is no relay ${unknown}; there are: ${names}`,
    );
  }
  for (const { name, relay } of there) if (relay) relaySection(config, name, relay.configSchema);
}

/** What is said of one relay, checked; empty when nothing is. */
export function relaySection<T>({ relays, where }: Config, name: string, schema: object): T {
  return checkSection(schema as TSchema, own(relays, name) ?? {}, where, ['relays', name]) as T;
}

function partners<K extends 'backend' | 'tools' | 'policy'>(adapters: Adapters, role: K) {
  return new Map(
    adapters.flatMap((adapter) => {
      const part = adapter[role];
      return part ? [[adapter.name, part as NonNullable<Adapter<never>[K]>] as const] : [];
    }),
  );
}

/** Each name has one section, called after the protocol that is spoken with it. */
function partsOf<T>(
  kind: string,
  wanted: Readonly<Record<string, JsonObject>>,
  parts: ReadonlyMap<string, Part<T>>,
  where: Config['where'],
): readonly Opening<T>[] {
  return Object.entries(wanted).map(([name, member]) => {
    const protocols = Object.keys(member);
    const [protocol = ''] = protocols;
    const part = parts.get(protocol);
    if (!part || protocols.length > 1) {
      const place = where([kind, name, ...(protocols.length === 1 ? [protocol] : [])]);
      throw new Fault(
        'invalid_request',
        `${place}: ${kind}.${name} needs one section, named after the protocol spoken with it: ${[...parts.keys()].join(', ')}`,
      );
    }
    const at = [kind, name, protocol];
    const section = checkSection(part.configSchema as TSchema, member[protocol], where, at);
    return {
      at: `${kind}.${name}`,
      said: JSON.stringify(member),
      open: (deps) => openAt(() => part.open(name, section as never, deps), where, at),
    };
  });
}
