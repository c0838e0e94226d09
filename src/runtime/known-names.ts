/**
 * Names that rules and doors may use: those of the configuration, and personas that were made through the API. A name that
 * nothing has makes a rule that never matches, or a door at which everything is refused; both are found before they matter.
 */
import type { Config } from '../config.ts';
import { wrong } from '../config-document.ts';
import type { Fault } from '../model/faults.ts';
import type { Persona } from '../model/resources.ts';
import { BUILT_IN } from '../mounts.ts';
import { type KnownNames, noSuch } from '../policy/mentions.ts';

export interface Surrounding {
  /** Personas in the log. */
  readonly personas: readonly Pick<Persona, 'id' | 'name'>[];
  /** Doors there can be; undefined when the adapters are not loaded. */
  readonly doors?: readonly string[];
  readonly approvers?: readonly string[];
}

/** Actors come in by these without a door of an adapter. */
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

/** Doors and relays whose section names a persona that is not there: nothing that comes in by them could be worked on. */
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
