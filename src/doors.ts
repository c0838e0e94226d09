/** What the configuration says to each adapter, held against that adapter's own schema. Composition, no logic. */
import type { TSchema } from 'typebox';
import { type Config, checkAt } from './config.ts';
import { Fault } from './model/faults.ts';
import { check } from './model/validate.ts';
import type { Adapter } from './ports.ts';

export interface Mount {
  readonly adapter: Adapter<never>;
  /** Its section, checked; empty when there is none. */
  readonly section: never;
  /** Its door stays shut when the configuration says `false`. */
  readonly door: boolean;
  /** Only someone who wrote a section can have asked for what the adapter serves. */
  readonly tools: boolean;
}

export function mountsOf({ doors, where }: Config, adapters: readonly Adapter<never>[]): readonly Mount[] {
  const unknown = Object.keys(doors).find((name) => !adapters.some((adapter) => adapter.name === name));
  if (unknown) {
    const there = adapters.map(({ name }) => name).join(', ');
    throw new Fault(
      'invalid_request',
      `${where(['doors', unknown])}: there is no door ${unknown}; there are: ${there}`,
    );
  }
  return adapters.map((adapter) => {
    const { name, configSchema } = adapter;
    const given = doors[name];
    const section = checkAt(() => check(configSchema as TSchema, given || {}, `doors.${name}`), where, ['doors', name]);
    return { adapter, section: section as never, door: given !== false, tools: Boolean(given) };
  });
}
