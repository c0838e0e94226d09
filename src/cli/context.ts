/** What every command shares: the options that say which house is meant, who is speaking, and how to end. */
import { userInfo } from 'node:os';
import type { House, HouseOptions } from '../compose.ts';
import { type Config, type Given, readConfig } from '../config.ts';
import type { Actor } from '../model/actions.ts';
import { asFault, type FaultKind } from '../model/faults.ts';

export interface CommonOptions {
  readonly config?: string;
  readonly data?: string;
}

export function configFrom({ config, data }: CommonOptions, more: Partial<Given> = {}): Promise<Config> {
  return readConfig({
    env: process.env,
    cwd: process.cwd(),
    ...(config && { file: config }),
    ...(data && { data }),
    ...more,
  });
}

/** Whoever can run commands on this machine as this user is the owner of the house. */
export function localActor(): Actor {
  return { id: `local:${userInfo().username}`, kind: 'person', scopes: ['*'], door: 'cli' };
}

/** A house to look into or give a word to; it takes up no work and recovers none. */
export async function visit<T>(options: CommonOptions, use: (house: House, config: Config) => Promise<T>): Promise<T> {
  const config = await configFrom(options);
  const house = await open(config, {});
  try {
    return await use(house, config);
  } finally {
    await house.close();
  }
}

export async function open(config: Config, more: Partial<HouseOptions>): Promise<House> {
  const { openHouse } = await import('../compose.ts');
  return await openHouse({ dataDir: config.dataDir, policy: { load: config.policy.load }, ...more });
}

/** One sentence on stderr, and an exit code a script can tell apart. */
const EXIT_CODES: Partial<Record<FaultKind, number>> = {
  invalid_request: 2,
  not_found: 3,
  conflict: 4,
  permission_denied: 5,
};

export function complain(thrown: unknown): number {
  const fault = asFault(thrown);
  const cause = fault.kind === 'internal' && fault.cause instanceof Error ? `: ${fault.cause.message}` : '';
  process.stderr.write(`tollbridge: ${fault.message}${cause}\n`);
  return EXIT_CODES[fault.kind] ?? 1;
}
