/** Checks the names that rules and doors of the configuration use against those that exist, in a running process. */

import type { Actor } from '../../model/actions.ts';
import type { Persona } from '../../model/resources.ts';
import { everyRow } from '../../model/values/every-row.ts';
import { type KnownNames, unknownNames } from '../../policy/rules/mentions.ts';
import { problemLine } from '../../policy/rules/problems.ts';
import type { ReloadablePolicy } from '../../policy/rules/reload.ts';
import type { Bridge, Logger, Row } from '../../ports/index.ts';
import type { Config } from '../config/config.ts';
import { knownNames, unknownInDoors } from './known-names.ts';

export interface NameCheckDeps {
  readonly bridge: Bridge;
  readonly actor: Actor;
  readonly policy: Pick<ReloadablePolicy, 'mentions'>;
  readonly logger: Logger;
  readonly doors: () => readonly string[] | undefined;
}

export interface NameCheck {
  /** Refuses doors and relays with an unknown persona; only those of one protocol, when it is named. */
  requireDoors(config: Config, protocol?: string): Promise<void>;
  /** Reports unknown names, each once for as long as it stands. */
  warn(config: Config): Promise<void>;
}

export function createNameCheck({ bridge, actor, policy, logger, doors }: NameCheckDeps): NameCheck {
  let reported = new Set<string>();

  async function known(config: Config): Promise<KnownNames> {
    const there = doors();
    return knownNames(config, { personas: await personas(bridge, actor), ...(there && { doors: there }) });
  }

  return {
    async requireDoors({ doors, relays, ...config }, protocol) {
      const wanted = { ...config, doors: only(doors, protocol), relays: only(relays, protocol) };
      if (Object.keys(wanted.doors).length + Object.keys(wanted.relays).length === 0) return;
      const [fault] = unknownInDoors(wanted, await known(wanted));
      if (fault) throw fault;
    },
    async warn(config) {
      const { doors, relays } = config;
      if (policy.mentions.length + Object.keys(doors).length + Object.keys(relays).length === 0) return;
      const names = await known(config);
      const found = [
        ...unknownNames(policy.mentions, names).map(problemLine),
        ...unknownInDoors(config, names).map(({ message }) => message),
      ];
      for (const line of found) if (!reported.has(line)) logger.warn({}, line);
      reported = new Set(found);
    },
  };
}

function only<T>(sections: Readonly<Record<string, T>>, name: string | undefined): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(sections).filter(([each]) => name === undefined || each === name));
}

async function personas(bridge: Bridge, actor: Actor): Promise<readonly (Persona & Row)[]> {
  const found: (Persona & Row)[] = [];
  const all = everyRow((paging) => bridge.list<Persona & Row>(actor, { object: 'persona', ...paging }));
  for await (const persona of all) found.push(persona);
  return found;
}
