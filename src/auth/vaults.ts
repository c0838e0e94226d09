/**
 * Secrets by name, for the configured parts that use them. The redactor learns every value before it is handed out, so
 * the value cannot reach the log from then on. Nothing here shows a value: only names can be listed.
 */

import { Fault } from '../model/faults.ts';
import { own } from '../model/values/own.ts';
import type { Clock, PrivateFiles, SecretUser } from '../ports/index.ts';
import { openStoreVault, using } from './store-vault.ts';
import { inTurn } from './turns.ts';
import { createVaultAccess, type GrantedVault } from './vault-access.ts';
import { type FileKey, openVaultFile, type VaultFile } from './vault-file.ts';

export type VaultSource = GrantedVault &
  (
    | { readonly provider: 'env'; readonly prefix: string }
    | { readonly provider: 'file'; readonly path: string; readonly key: FileKey }
    /** Among the private files of all gateways. Opened when it is first used. */
    | { readonly provider: 'store'; readonly files: () => Promise<PrivateFiles> }
  );

export interface SecretsDeps {
  readonly vaults: readonly VaultSource[];
  readonly env: NodeJS.ProcessEnv;
  readonly learn: (value: string) => void;
}

/**
 * `main:github` is the secret `github` of the vault `main`; a bare name is looked up in every vault, in order. For a
 * `user` only in the vaults open to it; without one the configuration itself asks, and every vault is searched.
 */
export function createSecrets({
  vaults,
  env,
  learn,
}: SecretsDeps): (name: string, user?: SecretUser) => Promise<string> {
  const open = vaults.map((source) => ({ source, read: reader(source, env) }));
  const access = createVaultAccess(vaults);
  return async (wanted, user) => {
    const { vault, name } = partsOf(wanted);
    if (user) {
      const allowed = access.vaultsFor(wanted, user);
      if (allowed.length === 0)
        throw new Fault('permission_denied', `no vault here lets this work use the secret ${wanted}`);
      return await found(
        open.filter(({ source }) => allowed.includes(source.name)),
        wanted,
        name,
      );
    }
    const sources = vault === undefined ? open : open.filter(({ source }) => source.name === vault);
    if (vault !== undefined && sources.length === 0) throw new Fault('not_found', `there is no vault ${vault}`);
    return await found(sources, wanted, name);
  };

  async function found(sources: typeof open, wanted: string, name: string): Promise<string> {
    for (const { read } of sources) {
      const value = await read(name);
      if (value === undefined) continue;
      requireLength(value, wanted);
      learnAll(value, learn);
      return value;
    }
    throw new Fault('not_found', `no secret ${wanted}; put it in with: tollbridge vault set ${name}`);
  }
}

export interface SecretWriter {
  /** Stores a secret under this name. */
  keep(name: string, value: string): Promise<void>;
  /** Runs `work` while no other caller, in this process or another, works on a secret of this name. */
  alone<T>(name: string, work: () => Promise<T>): Promise<T>;
}

/** For secrets obtained at run time. Undefined when no vault can be written. */
export function createSecretWriter({
  vaults,
  env,
  learn,
  clock,
}: SecretsDeps & { readonly clock: Clock }): SecretWriter | undefined {
  if (vaults.every(({ provider }) => provider === 'env')) return undefined;
  const locate = (wanted: string) => {
    const { vault, name } = partsOf(wanted);
    return { ...fileVault(vaults, env, vault), name };
  };
  return {
    async keep(wanted, value) {
      const { vault, name } = locate(wanted);
      requireLength(value, wanted);
      learnAll(value, learn);
      await vault.set(name, value, clock.now());
    },
    async alone(wanted, work) {
      const { source, name } = locate(wanted);
      if (source.provider === 'store') {
        return await using(source.files, (files) => files.alone(`secret ${source.name}:${name}`, work));
      }
      return await inTurn(`${source.path}.${name}.turn`, work);
    },
  };
}

/** A JSON value with secrets in it may never appear as a whole: the redactor has to know each of them. */
function learnAll(value: string, learn: (value: string) => void): void {
  learn(value);
  if (!value.startsWith('{')) return;
  try {
    JSON.parse(value, (name, each) => {
      if (/token|secret/i.test(name) && typeof each === 'string' && each.length >= SHORTEST_SECRET) learn(each);
      return each;
    });
  } catch {
    // Not JSON after all.
  }
}

/** The vault that `set`, `list` and `remove` work on: the one named, or the first that can be written. */
export function fileVault(vaults: readonly VaultSource[], env: NodeJS.ProcessEnv, name: string | undefined) {
  const source = vaults.find((each) => (name === undefined ? each.provider !== 'env' : each.name === name));
  if (!source) {
    const there = vaults.map((each) => each.name).join(', ') || 'none';
    throw new Fault('not_found', name ? `there is no vault ${name}; there are: ${there}` : 'no vault can be written');
  }
  if (source.provider === 'env') {
    throw new Fault(
      'invalid_request',
      `the vault ${source.name} reads variables (${source.prefix}NAME); set them instead`,
    );
  }
  return { source, vault: vaultOf(source, env) };
}

function vaultOf(source: Exclude<VaultSource, { provider: 'env' }>, env: NodeJS.ProcessEnv): VaultFile {
  return source.provider === 'store'
    ? openStoreVault(source)
    : openVaultFile({ path: source.path, key: source.key, env });
}

export interface ListedSecret {
  readonly vault: string;
  readonly name: string;
  readonly provider: VaultSource['provider'];
  /** Null for environment variables. */
  readonly updated_at: string | null;
}

export async function listSecrets(
  vaults: readonly VaultSource[],
  env: NodeJS.ProcessEnv,
): Promise<readonly ListedSecret[]> {
  const listed: ListedSecret[] = [];
  for (const source of vaults) {
    const { name: vault, provider } = source;
    if (source.provider !== 'env') {
      const names = await vaultOf(source, env).list();
      listed.push(...names.map((each) => ({ vault, provider, ...each })));
    } else {
      const names = Object.keys(env).filter((each) => each.startsWith(source.prefix) && each !== source.prefix);
      listed.push(
        ...names
          .toSorted()
          .map((each) => ({ vault, provider, name: each.slice(source.prefix.length), updated_at: null })),
      );
    }
  }
  return listed;
}

/** A shorter value occurs in ordinary text, so it could not be redacted without damaging that text. */
export const SHORTEST_SECRET = 6;

export function requireLength(value: string, name: string): void {
  if (value.length >= SHORTEST_SECRET) return;
  throw new Fault(
    'invalid_request',
    `the secret ${name} has fewer than ${SHORTEST_SECRET} characters, too few to be redacted`,
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

function reader(source: VaultSource, env: NodeJS.ProcessEnv): VaultFile['get'] {
  if (source.provider !== 'env') return vaultOf(source, env).get;
  return async (name) => own(env, `${source.prefix}${name}`) || undefined;
}
