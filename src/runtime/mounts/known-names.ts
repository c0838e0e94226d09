/**
 * Names that rules and doors may use: those of the configuration, and personas created through the API. An unknown name
 * makes a rule that never matches, or a door that refuses everything; both are reported before they matter.
 */

import type { Fault } from '../../model/faults.ts';
import type { Persona } from '../../model/resources.ts';
import { type KnownNames, noSuch } from '../../policy/rules/mentions.ts';
import type { Config } from '../config/config.ts';
import { wrong } from '../config/document.ts';
import { BUILT_IN } from './mounts.ts';

export interface Surrounding {
  /** Personas in the log. */
  readonly personas: readonly Pick<Persona, 'id' | 'name'>[];
  /** Doors there can be; undefined when the adapters are not loaded. */
  readonly doors?: readonly string[];
  readonly approvers?: readonly string[];
}

/** Doors that belong to no adapter. */
const OWN_DOORS = ['cli', 'link'];

export function knownNames(config: Config, { personas, doors, approvers }: Surrounding): KnownNames {
  const configured = Object.keys(config.personas);
  return {
    all: {
      persona: [...configured, ...personas.map(({ name }) => name)],
      persona_id: [...configured.map((name) => `persona_${name}`), ...personas.map(({ id }) => id)],
      ...(doors && { door: [...doors, ...OWN_DOORS] }),
    },
    // A relay's agent and its servers are named by the command that starts it, and approvers by an identity provider.
    some: {
      server: Object.keys(config.tools),
      agent: [...Object.keys(config.agents), ...(config.demo ? BUILT_IN : [])],
      approver: approvers ?? [],
    },
  };
}

/** Doors and relays whose section names an unknown persona: no request that arrives there could be worked on. */
export function unknownInDoors({ doors, relays, where }: Sections, known: KnownNames): readonly Fault[] {
  const ids = known.all.persona_id ?? [];
  return Object.entries({ doors, relays }).flatMap(([kind, sections]) =>
    Object.entries(sections).flatMap(([name, section]) =>
      Object.entries(section || {}).flatMap(([member, id]) => {
        if (!['persona', 'persona_id'].includes(member) || typeof id !== 'string' || ids.includes(id)) return [];
        const close = ids.find((one) => one === `persona_${id}`);
        return [wrong(where([kind, name, member]), noSuch('persona with the id', id, ids, close))];
      }),
    ),
  );
}
type Sections = Pick<Config, 'doors' | 'relays' | 'where'>;
