/**
 * Secrets by name, for whoever is configured to use one. Every value is told to the redactor before it is handed out, so
 * it cannot reach the log from then on. Nothing here shows a value: what can be listed are names.
 */

import { Fault } from '../model/faults.ts';
import { own } from '../model/own.ts';
import type { Clock } from '../ports.ts';
import { inTurn } from './turns.ts';
import { type FileKey, openVaultFile, type VaultFile } from './vault-file.ts';

export type VaultPlace =
  | { readonly name: string; readonly provider: 'env'; readonly prefix: string }
  | { readonly name: string; readonly provider: 'file'; readonly path: string; readonly key: FileKey };

export interface SecretsDeps {
  readonly vaults: readonly VaultPlace[];
  readonly env: NodeJS.ProcessEnv;
  readonly learn: (value: string) => void;
}

/** `main:github` is the secret `github` of the vault `main`; a bare name is looked for in every vault, in order. */
export function createSecrets({ vaults, env, learn }: SecretsDeps): (name: string) => Promise<string> {
  const open = vaults.map((place) => ({ place, read: reader(place, env) }));
  return async (wanted) => {
    const { vault, name } = partsOf(wanted);
    const places = vault === undefined ? open : open.filter(({ place }) => place.name === vault);
    if (vault !== undefined && places.length === 0) throw new Fault('not_found', `there is no vault ${vault}`);
    for (const { read } of places) {
      const value = await read(name);
      if (value === undefined) continue;
      requireLength(value, wanted);
      learnAll(value, learn);
      return value;
    }
    throw new Fault('not_found', `no secret ${wanted}; put it in with: tollbridge vault set ${name}`);
  };
}

export interface Keeper {
  /** Puts a secret where it will be found under this name. */
  keep(name: string, value: string): Promise<void>;
  /** Nobody else, in this process or another, is at the same time about a secret of this name. */
  alone<T>(name: string, work: () => Promise<T>): Promise<T>;
}

/** For what is given to us while we run. Undefined when no vault can be written. */
export function createKeeper({
  vaults,
  env,
  learn,
  clock,
}: SecretsDeps & { readonly clock: Clock }): Keeper | undefined {
  if (!vaults.some(({ provider }) => provider === 'file')) return undefined;
  const placeOf = (wanted: string) => {
    const { vault, name } = partsOf(wanted);
    return { ...fileVault(vaults, env, vault), name };
  };
  return {
    async keep(wanted, value) {
      const { vault, name } = placeOf(wanted);
      requireLength(value, wanted);
      learnAll(value, learn);
      await vault.set(name, value, clock.now());
    },
    async alone(wanted, work) {
      const { place, name } = placeOf(wanted);
      return await inTurn(`${place.path}.${name}.turn`, work);
    },
  };
}

/** What holds secrets in it is not told as a whole: each of them has to be known by itself. */
function learnAll(value: string, learn: (value: string) => void): void {
  learn(value);
  if (!value.startsWith('{')) return;
  try {
    JSON.parse(value, (name, each) => {
      if (/token|secret/i.test(name) && typeof each === 'string' && each.length >= SHORTEST) learn(each);
      return each;
    });
  } catch {
    // It only looked like one that does.
  }
}

/** The vault `set`, `list` and `remove` speak about: the one named, or the first that can be written. */
export function fileVault(vaults: readonly VaultPlace[], env: NodeJS.ProcessEnv, name: string | undefined) {
  const place = vaults.find((each) => (name === undefined ? each.provider === 'file' : each.name === name));
  if (!place) {
    const there = vaults.map((each) => each.name).join(', ') || 'none';
    throw new Fault('not_found', name ? `there is no vault ${name}; there are: ${there}` : 'no vault can be written');
  }
  if (place.provider === 'env') {
    throw new Fault(
      'invalid_request',
      `the vault ${place.name} reads variables (${place.prefix}NAME); set them instead`,
    );
  }
  return { place, vault: openVaultFile({ path: place.path, key: place.key, env }) };
}

export interface ListedSecret {
  readonly vault: string;
  readonly name: string;
  readonly provider: VaultPlace['provider'];
  /** Unknown for variables. */
  readonly updated_at: string | null;
}

export async function listSecrets(
  vaults: readonly VaultPlace[],
  env: NodeJS.ProcessEnv,
): Promise<readonly ListedSecret[]> {
  const listed: ListedSecret[] = [];
  for (const place of vaults) {
    const { name: vault, provider } = place;
    if (place.provider === 'file') {
      const names = await openVaultFile({ path: place.path, key: place.key, env }).list();
      listed.push(...names.map((each) => ({ vault, provider, ...each })));
    } else {
      const names = Object.keys(env).filter((each) => each.startsWith(place.prefix) && each !== place.prefix);
      listed.push(
        ...names
          .toSorted()
          .map((each) => ({ vault, provider, name: each.slice(place.prefix.length), updated_at: null })),
      );
    }
  }
  return listed;
}

/** What is shorter could not be told from ordinary text, and so not be kept out of the log. */
const SHORTEST = 6;

export function requireLength(value: string, name: string): void {
  if (value.length >= SHORTEST) return;
  throw new Fault(
    'invalid_request',
    `the secret ${name} has fewer than ${SHORTEST} characters, too few to be redacted`,
  );
}

const SECRET_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

export function requireSecretName(name: string): void {
  if (SECRET_NAME.test(name)) return;
  throw new Fault(
    'invalid_request',
    'the name of a secret has up to 128 letters, digits, dots, dashes and underscores',
  );
}

function partsOf(wanted: string): { vault: string | undefined; name: string } {
  const at = wanted.indexOf(':');
  const name = wanted.slice(at + 1);
  requireSecretName(name);
  return { vault: at < 0 ? undefined : wanted.slice(0, at), name };
}

function reader(place: VaultPlace, env: NodeJS.ProcessEnv): VaultFile['get'] {
  if (place.provider === 'file') return openVaultFile({ path: place.path, key: place.key, env }).get;
  return async (name) => own(env, `${place.prefix}${name}`) || undefined;
}
