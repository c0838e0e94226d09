/**
 * What the configuration says to one command's own door, and the harnesses it says decide along with the rules: for
 * commands that open a house without a gateway. Whoever was given a say there has it here too.
 */

import { createSecrets } from '../auth/vaults.ts';
import type { Config } from '../config.ts';
import { systemClock } from '../core/clock.ts';
import type { Redactor } from '../core/redact.ts';
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/own.ts';
import { mountsOf } from '../mounts.ts';
import type { Bridge, Closable, Deps, Ids, Logger, PolicyEngine } from '../ports.ts';
import { createHttpHost } from '../wire/http.ts';

export interface Harnesses extends Closable {
  readonly engines: readonly PolicyEngine[];
  /** What the configuration says to the door of this name, checked; empty when it says nothing. */
  readonly section: object;
  /** From now on they hear what happens. */
  listen(bridge: Bridge, keeper: Actor): void;
}

export interface HarnessDeps {
  readonly log: Logger;
  readonly ids: Ids;
  readonly redactor: Pick<Redactor, 'learn'>;
}

/** `door`: whose section is wanted as well, if any. Where nothing is said of either, nothing is loaded. */
export async function openHarnesses(config: Config, door: string | undefined, deps: HarnessDeps): Promise<Harnesses> {
  if (Object.keys(config.harnesses).length === 0 && (door === undefined || !own(config.doors, door))) {
    return { engines: [], section: {}, listen() {}, async close() {} };
  }
  const { adapters } = await import('../../adapters/index.ts');
  const { harnesses, doors } = mountsOf(config, adapters);
  const all = depsOf(config, deps);
  const engines = harnesses.map((harness) => harness.open(all));
  return {
    engines,
    section: doors.find(({ adapter }) => adapter.name === door)?.section ?? {},
    listen(bridge, keeper) {
      for (const engine of engines) engine.listen?.(bridge, keeper);
    },
    async close() {
      await Promise.all(engines.map((engine) => engine.close?.()));
    },
  };
}

/** A harness is asked and told; nobody comes in by it. */
function depsOf(config: Config, { log, ids, redactor }: HarnessDeps): Deps {
  return {
    log,
    ids,
    clock: systemClock,
    secret: createSecrets({ vaults: config.vaults, env: process.env, learn: redactor.learn }),
    http: createHttpHost({ requestId: () => ids.next('req'), log }),
    authenticate: () => Promise.reject(new Fault('unauthenticated', 'there is no door here')),
    jwks: () => ({}),
  };
}
