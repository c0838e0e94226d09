/**
 * `tollbridge.yaml`: read and checked once, at the edge, and handed on as a typed value. Works with no file at all.
 * A mistake is answered with its line and column and what is wrong there.
 */
import { access, constants, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { OAuthOptions } from './auth/oauth.ts';
import type { VaultPlace } from './auth/vaults.ts';
import { checkDocument, readDocument, type Where, wrong } from './config-document.ts';
import { type Limits, limitsOf } from './config-limits.ts';
import type { ConfigFile } from './config-shape.ts';
import { type StorePlace, storeOf } from './config-store.ts';
import { Fault } from './model/faults.ts';
import type { JsonObject } from './model/schema.ts';
import { durationMs } from './policy/duration.ts';
import type { Sources } from './policy/load.ts';

export interface Config {
  /** The file it came from; undefined when there is none. */
  readonly file: string | undefined;
  readonly dataDir: string;
  /** The log: where it is, and what it may take. */
  readonly store: StorePlace;
  readonly host: string;
  readonly port: number;
  readonly publicUrl: string | undefined;
  readonly limits: Limits;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly oauth: OAuthOptions | undefined;
  readonly vaults: readonly VaultPlace[];
  readonly traces: NonNullable<ConfigFile['telemetry']>['traces'];
  /** As written; whoever mounts an adapter holds its section against that adapter's own schema. */
  readonly doors: Readonly<Record<string, JsonObject | false>>;
  /** Likewise, by name and then by the protocol spoken with it. */
  readonly agents: Readonly<Record<string, JsonObject>>;
  readonly tools: Readonly<Record<string, JsonObject>>;
  readonly harnesses: Readonly<Record<string, JsonObject>>;
  /** Likewise, by protocol. */
  readonly relays: Readonly<Record<string, JsonObject>>;
  readonly demo: boolean;
  readonly personas: NonNullable<ConfigFile['personas']>;
  readonly quotas: NonNullable<ConfigFile['quotas']>;
  readonly defaultAgent: string | undefined;
  readonly autonomy: ConfigFile['autonomy'];
  readonly askExpiresMs: number | undefined;
  readonly webhooks: NonNullable<NonNullable<ConfigFile['approvals']>['webhooks']>;
  /** Undefined keeps events for good. */
  readonly keepEventsMs: number | undefined;
  /** Reads the rules anew each time, so that a changed file is a changed policy. */
  readonly policy: { readonly load: () => Promise<Sources>; readonly watch: readonly string[] };
  /** The file as it was read; empty when there is none. */
  readonly written: ConfigFile;
  /** Reads the same file again. */
  readonly again: () => Promise<Config>;
  /** For whoever finds something wrong with a member later. */
  readonly where: Where;
}

export interface Given {
  readonly file?: string;
  readonly data?: string;
  readonly host?: string;
  readonly port?: number;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
}

/** With no rules of anyone's: reading is fine, and what leaves the house is for a person to say. */
export const FIRST_RULES = `
- id: reads-are-fine
  when: { effect: read }
  then: allow
  say: reading changes nothing
- id: outside-needs-a-human
  when: { effect: [send, publish, pay] }
  then: ask
  say: this leaves the house, so a person decides
`;

export async function readConfig(given: Given): Promise<Config> {
  const wanted = given.file ?? given.env.TOLLBRIDGE_CONFIG;
  const file = resolve(given.cwd, wanted ?? 'tollbridge.yaml');
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT' && !wanted) return undefined;
    throw new Fault(
      'invalid_request',
      cause.code === 'ENOENT'
        ? `cannot read ${file}: there is no such file; name one that is there, or leave --config and TOLLBRIDGE_CONFIG out`
        : `cannot read ${file}: ${cause.code}`,
    );
  });
  const document = text === undefined ? undefined : readDocument(text, file, given.env);
  const config = document ? checkDocument(document) : {};
  const base = document ? dirname(file) : given.cwd;
  const at = (path: string) =>
    path.startsWith('~/') ? join(homedir(), path.slice(2)) : isAbsolute(path) ? path : resolve(base, path);
  const where: Where = document?.where ?? (() => 'configuration');
  const policies = (config.policies ?? []).map(at);
  await requireFiles(policies, (index) => where(['policies', String(index)]));
  const duration = (given: string | undefined, ...path: string[]) => durationAt(given, path, where);
  const dataDir = given.data
    ? resolve(given.cwd, given.data)
    : at(given.env.TOLLBRIDGE_DATA ?? config.data ?? '~/.tollbridge');
  const publicUrl = config.listen?.public_url ? new URL(config.listen.public_url) : undefined;
  return {
    file: document && file,
    dataDir,
    store: storeOf(config.store, {
      at,
      dataDir,
      moved: (given.data ?? given.env.TOLLBRIDGE_DATA) !== undefined,
      where,
    }),
    host: given.host ?? config.listen?.host ?? '127.0.0.1',
    port: given.port ?? config.listen?.port ?? 4319,
    limits: limitsOf(config.limits, where),
    publicUrl: config.listen?.public_url?.replace(/\/$/, ''),
    allowedHosts: [...(publicUrl ? [publicUrl.hostname] : []), ...(config.listen?.allowed_hosts ?? [])],
    allowedOrigins: [...(publicUrl ? [publicUrl.origin] : []), ...(config.listen?.allowed_origins ?? [])],
    oauth: config.auth?.oauth && oauthOf(config.auth.oauth, duration),
    vaults: vaultsOf(config.vaults, { at, dataDir, where }),
    traces: config.telemetry?.traces,
    doors: config.doors ?? {},
    agents: config.agents ?? {},
    tools: config.tools ?? {},
    harnesses: config.harnesses ?? {},
    relays: config.relays ?? {},
    personas: personasOf(config, where),
    quotas: quotasOf(config, duration),
    demo: config.demo ?? config.agents === undefined,
    defaultAgent: config.default_agent,
    autonomy: config.autonomy,
    askExpiresMs: duration(config.approvals?.expire_after, 'approvals', 'expire_after'),
    webhooks: config.approvals?.webhooks ?? {},
    keepEventsMs: duration(config.retention?.events, 'retention', 'events'),
    policy: {
      load: sourcesOf(document && file, policies, given.env),
      watch: [...(document ? [file] : []), ...policies],
    },
    written: config,
    again: () => readConfig(given),
    where,
  };
}

/** Sections that can change while work goes on. `rules` can too, and have their own way. */
export const WITHOUT_RESTART = ['agents', 'tools', 'harnesses', 'personas', 'quotas', 'retention', 'relays'] as const;

function personasOf({ personas = {}, quotas = {} }: ConfigFile, where: Where): Config['personas'] {
  for (const [name, { quota }] of Object.entries(personas)) {
    if (quota && !Object.hasOwn(quotas, quota))
      throw wrong(
        where(['personas', name, 'quota']),
        `there is no quota ${quota}; quotas has: ${Object.keys(quotas).join(', ') || 'none'}`,
      );
  }
  return personas;
}

function quotasOf({ quotas = {} }: ConfigFile, duration: Duration): Config['quotas'] {
  for (const [name, { per }] of Object.entries(quotas)) duration(per, 'quotas', name, 'per');
  return quotas;
}

type Duration = (given: string | undefined, ...path: string[]) => number | undefined;

function oauthOf(oauth: NonNullable<NonNullable<ConfigFile['auth']>['oauth']>, duration: Duration): OAuthOptions {
  const tolerance = duration(oauth.clock_tolerance, 'auth', 'oauth', 'clock_tolerance');
  return {
    issuer: oauth.issuer,
    audience: oauth.audience,
    jwks: oauth.jwks_uri,
    ...(oauth.tenant_claim && { tenantClaim: oauth.tenant_claim }),
    ...(oauth.workspaces_claim && { workspacesClaim: oauth.workspaces_claim }),
    ...(oauth.required_scopes && { requiredScopes: oauth.required_scopes }),
    ...(tolerance !== undefined && { clockToleranceSeconds: tolerance / 1000 }),
  };
}

/** Rules that are not there would be rules that are not in force, and nobody would be told. */
async function requireFiles(files: readonly string[], where: (index: number) => string): Promise<void> {
  for (const [index, file] of files.entries()) {
    await access(file, constants.R_OK).catch(() => {
      throw wrong(
        where(index),
        `${file} cannot be read; write the name of a .cedar or .yaml file of rules that is there`,
      );
    });
  }
}

interface Places {
  readonly at: (path: string) => string;
  readonly dataDir: string;
  readonly where: Where;
}

/** With none configured: an encrypted file beside the log, then variables that are named like secrets of ours. */
function vaultsOf(vaults: ConfigFile['vaults'], { at, dataDir, where }: Places): readonly VaultPlace[] {
  const wanted = vaults ?? { local: { provider: 'file' as const }, env: { provider: 'env' as const } };
  return Object.entries(wanted).map(([name, { provider, prefix, path, key_file, passphrase_env }]): VaultPlace => {
    const foreign = provider === 'env' ? { path, key_file, passphrase_env } : { prefix };
    for (const [member, value] of Object.entries(foreign)) {
      if (value !== undefined)
        throw wrong(where(['vaults', name, member]), `${member} means nothing to the provider ${provider}`);
    }
    if (key_file && passphrase_env)
      throw wrong(where(['vaults', name, 'passphrase_env']), 'a vault has a key_file or a passphrase_env, not both');
    if (provider === 'env') return { name, provider, prefix: prefix ?? 'TOLLBRIDGE_SECRET_' };
    return {
      name,
      provider,
      path: path ? at(path) : join(dataDir, 'vaults', `${name}.json`),
      key: passphrase_env
        ? { passphraseEnv: passphrase_env }
        : { file: key_file ? at(key_file) : join(dataDir, 'vaults', `${name}.key`) },
    };
  });
}

/**
 * Reads the rules anew each time. A configuration that has become unreadable as a whole has no rules to refuse: those it had stay, and
 * whoever watches the whole of it says what is wrong, once.
 */
function sourcesOf(file: string | undefined, policies: readonly string[], env: NodeJS.ProcessEnv) {
  let last: ConfigFile | undefined;
  return async (): Promise<Sources> => {
    try {
      last = file ? checkDocument(readDocument(await readFile(file, 'utf8'), file, env)) : {};
    } catch (thrown) {
      if (!last) throw thrown;
    }
    const files = await Promise.all(policies.map(async (name) => ({ name, text: await readFile(name, 'utf8') })));
    const rules = last.rules ?? (files.length > 0 ? undefined : FIRST_RULES);
    return { ...(rules && { rules, rulesName: file ?? 'built-in rules' }), files };
  };
}

function durationAt(text: string | undefined, path: readonly string[], where: Where): number | undefined {
  if (text === undefined) return undefined;
  const ms = durationMs(text);
  if (ms === undefined)
    throw wrong(where(path), `${path.join('.')}: ${text} is not a duration; write 30s, 10m, 12h or 30d`);
  return ms;
}
