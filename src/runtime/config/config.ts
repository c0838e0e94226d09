/**
 * `tollbridge.yaml`: read and checked once, at the edge, and handed on as a typed value. Works with no file at all. A
 * mistake is reported with its line and column and the reason. The file is the one named by the user, or the user's
 * own; one in the working directory adds restricting rules once it is trusted, and nothing else (config/project.ts).
 */
import { access, constants } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { OidcSignInOptions } from '../../auth/console-oidc.ts';
import type { OAuthOptions } from '../../auth/oauth.ts';
import type { VaultSource } from '../../auth/vaults.ts';
import type { JsonObject } from '../../model/schema.ts';
import { durationMs } from '../../model/values/duration.ts';
import type { PolicyFile, Sources } from '../../policy/rules/load.ts';
import { readText } from '../../policy/rules/read-text.ts';
import type { AgentTerms } from '../../ports/index.ts';
import type { DatabaseFiles, StoreLocation } from '../../store/index.ts';
import { sharedFilesOf } from '../installation/shared-files.ts';
import type { TlsFiles } from '../tls-files.ts';
import { withOwnPrograms } from './commands.ts';
import { checkDocument, checkSection, readDocument, type Where, wrong } from './document.ts';
import { type Environment, hidingEnvironment } from './environment.ts';
import { type ConfigText, dataVariable, ownFile } from './files.ts';
import { type Limits, limitsOf } from './limits.ts';
import { lookAtProject, type Project, pinnedRules } from './project.ts';
import { type ReplicasConfig, replicasOf } from './replicas.ts';
import { AgentTermsShape, type ConfigFile } from './shape.ts';
import { storeOf } from './store.ts';
import { homeOfUser, type UserPaths } from './user-paths.ts';

export interface Config {
  /** The file that holds everything but the project's rules; undefined when there is none. */
  readonly file: string | undefined;
  /** The file in the working directory and its state; undefined where it is `file` itself, or was not looked for. */
  readonly project: Project | undefined;
  readonly dataDir: string;
  /** Location and limits of the log. */
  readonly store: StoreLocation;
  /** Private files of the installation in the database of the log. Undefined: they lie in the data directory. */
  readonly sharedFiles: (() => Promise<DatabaseFiles>) | undefined;
  readonly host: string;
  readonly port: number;
  readonly publicUrl: string | undefined;
  /** Certificate and key of the port; undefined where it speaks plain HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly limits: Limits;
  /** How long a port that is to be closed goes on accepting connections. */
  readonly drainMs: number | undefined;
  readonly replicas: ReplicasConfig;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  /** `signIn`: people sign in to the console there. */
  readonly oauth: (OAuthOptions & { readonly signIn?: OidcSignInOptions }) | undefined;
  readonly vaults: readonly VaultSource[];
  readonly traces: NonNullable<ConfigFile['telemetry']>['traces'];
  /** As written; the code that mounts an adapter checks the section against that adapter's own schema. */
  readonly doors: Readonly<Record<string, JsonObject | false>>;
  /** As written, by name and then by the protocol spoken with it. */
  readonly agents: Readonly<Record<string, JsonObject>>;
  /** What holds for an agent whichever protocol it speaks. Only agents about which something is said. */
  readonly agentTerms: ReadonlyMap<string, AgentTerms>;
  readonly tools: Readonly<Record<string, JsonObject>>;
  readonly bundles: NonNullable<ConfigFile['bundles']>;
  readonly harnesses: Readonly<Record<string, JsonObject>>;
  /** As written, by protocol. */
  readonly relays: Readonly<Record<string, JsonObject>>;
  readonly demo: boolean;
  readonly personas: NonNullable<ConfigFile['personas']>;
  readonly quotas: NonNullable<ConfigFile['quotas']>;
  readonly defaultAgent: string | undefined;
  readonly autonomy: ConfigFile['autonomy'];
  readonly askExpiresMs: number | undefined;
  readonly readsInOneCommit: boolean;
  readonly webhooks: NonNullable<NonNullable<ConfigFile['approvals']>['webhooks']>;
  /** Witnesses that keep signed heads of the log. */
  readonly witness: NonNullable<ConfigFile['witness']>;
  /** Undefined: events are kept forever. */
  readonly keepEventsMs: number | undefined;
  /** Reads the rules again each time, so that a changed file is a changed policy. */
  readonly policy: { readonly load: () => Promise<Sources>; readonly watch: readonly string[] };
  /** The file as it was read; empty when there is none. */
  readonly written: ConfigFile;
  /** Reads the same file again. */
  readonly again: () => Promise<Config>;
  /** Environment variables it used. Their values may be secrets, so no message about it may show them. */
  readonly environment: Environment;
  /** Locates a member, for errors found in it later. */
  readonly where: Where;
}

export interface ConfigRequest {
  /** Named by the user: trusted as a whole, and read instead of the user's own file. */
  readonly file?: string;
  /** Paths of the user's own files. Without them neither those nor the working directory are looked at. */
  readonly user?: UserPaths;
  readonly data?: string;
  readonly host?: string;
  readonly port?: number;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
}

/** The rules when none are configured: reading is allowed, and a person decides on acts with an effect outside. */
export const FIRST_RULES = `
- id: reads-are-fine
  when: { effect: read }
  then: allow
  say: reading changes nothing
- id: outside-needs-a-human
  when: { effect: [send, publish, pay] }
  then: ask
  say: data leaves this host, so a person decides
`;

export async function readConfig(request: ConfigRequest): Promise<Config> {
  const environment = new Map<string, string>();
  try {
    return await readWith(request, environment);
  } catch (thrown) {
    throw hidingEnvironment(thrown, environment);
  }
}

async function readWith(request: ConfigRequest, environment: Map<string, string>): Promise<Config> {
  const { file, text }: ConfigText = await ownFile(request);
  const document = text === undefined ? undefined : readDocument(text, file, request.env, environment);
  const project = request.user && (await lookAtProject(request.cwd, request.user, file));
  const at = (path: string) =>
    path.startsWith('~/') ? join(homeOfUser(), path.slice(2)) : isAbsolute(path) ? path : resolve(dirname(file), path);
  const config = withOwnPrograms(document ? checkDocument(document) : {}, at);
  const where: Where = document?.where ?? (() => 'configuration');
  const policies = (config.policies ?? []).map(at);
  await requireFiles(policies, (index) => where(['policies', String(index)]));
  const duration = (text: string | undefined, ...path: string[]) => durationAt(text, path, where);
  const dataDir = request.data
    ? resolve(request.cwd, request.data)
    : at(dataVariable(request.env) ?? config.data ?? '~/.tollbridge');
  const pinned = request.user && project ? pinnedOf(project.path, request.user.trust) : undefined;
  const publicUrl = config.listen?.public_url ? new URL(config.listen.public_url) : undefined;
  const sharedFiles = config.store?.keys === undefined ? undefined : sharedFilesOf(() => store);
  const vaults = vaultsOf(config.vaults, { at, dataDir, where, sharedFiles });
  const store = storeOf(config.store, {
    at,
    dataDir,
    moved: (request.data ?? dataVariable(request.env)) !== undefined,
    where,
    // What opens the store cannot lie in it.
    vaults: vaults.filter(({ provider }) => provider !== 'store'),
    env: request.env,
  });
  return {
    file: document && file,
    project,
    dataDir,
    store,
    sharedFiles,
    host: request.host ?? config.listen?.host ?? '127.0.0.1',
    port: request.port ?? config.listen?.port ?? 4319,
    tls: config.listen?.tls && tlsOf(config.listen.tls, at, duration),
    drainMs: duration(config.listen?.drain, 'listen', 'drain'),
    replicas: replicasOf(config.replicas, where),
    limits: limitsOf(config.limits, where),
    publicUrl: config.listen?.public_url?.replace(/\/$/, ''),
    allowedHosts: [...(publicUrl ? [publicUrl.hostname] : []), ...(config.listen?.allowed_hosts ?? [])],
    allowedOrigins: [...(publicUrl ? [publicUrl.origin] : []), ...(config.listen?.allowed_origins ?? [])],
    oauth: config.auth?.oauth && oauthOf(config.auth.oauth, duration),
    vaults,
    traces: config.telemetry?.traces,
    doors: config.doors ?? {},
    agents: sectionsOf(config.agents),
    agentTerms: termsOf(config, where),
    tools: config.tools ?? {},
    bundles: config.bundles ?? {},
    harnesses: config.harnesses ?? {},
    relays: config.relays ?? {},
    personas: personasOf(config, where),
    quotas: quotasOf(config, duration),
    demo: config.demo ?? config.agents === undefined,
    defaultAgent: config.default_agent,
    autonomy: config.autonomy,
    askExpiresMs: duration(config.approvals?.expire_after, 'approvals', 'expire_after'),
    readsInOneCommit: config.reads_in_one_commit ?? true,
    webhooks: config.approvals?.webhooks ?? {},
    witness: witnessesOf(config.witness, at),
    keepEventsMs: duration(config.retention?.events, 'retention', 'events'),
    policy: {
      load: withPinned(sourcesOf(document && file, policies, request.env), pinned),
      watch: [...(document ? [file] : []), ...policies, ...(request.user ? [request.user.trust] : [])],
    },
    written: config,
    again: () => readConfig(request),
    environment,
    where,
  };
}

/** Sections that can change while work goes on. `rules` can too, and are reloaded separately. */
export const WITHOUT_RESTART = [
  'agents',
  'tools',
  'bundles',
  'harnesses',
  'personas',
  'quotas',
  'retention',
  'relays',
  'policies',
  'autonomy',
] as const;

/** A file of heads is found where the configuration is, as every other file that it names. */
function witnessesOf(witness: ConfigFile['witness'] = {}, at: (path: string) => string): Config['witness'] {
  return Object.fromEntries(
    Object.entries(witness).map(([name, to]) => [name, 'file' in to ? { ...to, file: at(to.file) } : to]),
  );
}

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

const TERMS: readonly string[] = Object.keys(AgentTermsShape.properties);

/** The agents with the section of their protocol only. */
function sectionsOf(agents: ConfigFile['agents'] = {}): Config['agents'] {
  const only = (agent: JsonObject) =>
    Object.fromEntries(Object.entries(agent).filter(([name]) => !TERMS.includes(name)));
  return Object.fromEntries(Object.entries(agents).map(([name, agent]) => [name, only(agent)]));
}

function termsOf({ agents = {}, quotas = {} }: ConfigFile, where: Where): Config['agentTerms'] {
  const found = Object.entries(agents).map(([name, agent]): [string, AgentTerms] => {
    const said = Object.fromEntries(Object.entries(agent).filter(([member]) => TERMS.includes(member)));
    const { about, quota, off } = checkSection(AgentTermsShape, said, where, ['agents', name]);
    if (quota && !Object.hasOwn(quotas, quota))
      throw wrong(
        where(['agents', name, 'quota']),
        `there is no quota ${quota}; quotas has: ${Object.keys(quotas).join(', ') || 'none'}`,
      );
    const reason = off === true ? 'the configuration says so' : off;
    return [
      name,
      { ...(about && { about }), ...(quota && { quota_id: `quota_${quota}` }), ...(reason && { off: reason }) },
    ];
  });
  return new Map(found.filter(([, terms]) => Object.keys(terms).length > 0));
}

type Duration = (text: string | undefined, ...path: string[]) => number | undefined;
type OAuthSection = NonNullable<NonNullable<ConfigFile['auth']>['oauth']>;
type SignInSection = NonNullable<OAuthSection['sign_in']>;

function oauthOf(oauth: OAuthSection, duration: Duration): Config['oauth'] {
  const tolerance = duration(oauth.clock_tolerance, 'auth', 'oauth', 'clock_tolerance');
  return {
    issuer: oauth.issuer,
    audience: oauth.audience,
    jwks: oauth.jwks_uri,
    ...(oauth.tenant_claim && { tenantClaim: oauth.tenant_claim }),
    ...(oauth.workspaces_claim && { workspacesClaim: oauth.workspaces_claim }),
    ...(oauth.required_scopes && { requiredScopes: oauth.required_scopes }),
    ...(tolerance !== undefined && { clockToleranceSeconds: tolerance / 1000 }),
    ...(oauth.sign_in && { signIn: signInOf(oauth.sign_in) }),
  };
}

function signInOf({ client_id, secret, scopes = [], roles_claim, roles = {} }: SignInSection): OidcSignInOptions {
  return {
    clientId: client_id,
    ...(secret && { secret }),
    scopes,
    ...(roles_claim && { rolesClaim: roles_claim }),
    roles,
  };
}

/** Rules in a missing file would silently not be in force. */
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

interface PathContext {
  readonly at: (path: string) => string;
  readonly dataDir: string;
  readonly where: Where;
  readonly sharedFiles: Config['sharedFiles'];
}

/**
 * With none configured: an encrypted file beside the log, then environment variables with the prefix of our secrets. Before them, where
 * gateways share their keys, the one they share: sign-ins that are made at run time go there.
 */
function vaultsOf(
  vaults: ConfigFile['vaults'],
  { at, dataDir, where, sharedFiles }: PathContext,
): readonly VaultSource[] {
  const wanted: NonNullable<ConfigFile['vaults']> = vaults ?? {
    ...(sharedFiles && { shared: { provider: 'store' } }),
    local: { provider: 'file' },
    env: { provider: 'env' },
  };
  return Object.entries(wanted).map(
    ([name, { provider, prefix, path, key_file, passphrase_env, access }]): VaultSource => {
      const granted = access && { access };
      const foreign = {
        ...(provider !== 'file' && { path, key_file, passphrase_env }),
        ...(provider !== 'env' && { prefix }),
      };
      for (const [member, value] of Object.entries(foreign)) {
        if (value !== undefined)
          throw wrong(where(['vaults', name, member]), `${member} means nothing to the provider ${provider}`);
      }
      if (key_file && passphrase_env)
        throw wrong(where(['vaults', name, 'passphrase_env']), 'a vault has a key_file or a passphrase_env, not both');
      if (provider === 'store') {
        if (sharedFiles) return { name, provider, files: sharedFiles, ...granted };
        throw wrong(
          where(['vaults', name, 'provider']),
          `the vault ${name} lies in the store: name its secret with store.keys`,
        );
      }
      if (provider === 'env') return { name, provider, prefix: prefix ?? 'TOLLBRIDGE_SECRET_', ...granted };
      return {
        ...granted,
        name,
        provider,
        path: path ? at(path) : join(dataDir, 'vaults', `${name}.json`),
        key: passphrase_env
          ? { passphraseEnv: passphrase_env }
          : { file: key_file ? at(key_file) : join(dataDir, 'vaults', `${name}.key`) },
      };
    },
  );
}

/**
 * Reads the rules again each time. While the configuration as a whole cannot be read, the last rules stay in force and
 * are not refused: the watcher of the configuration reports the error, once.
 */
function sourcesOf(file: string | undefined, policies: readonly string[], env: NodeJS.ProcessEnv) {
  let last: ConfigFile | undefined;
  let where: Where | undefined;
  return async (): Promise<Sources> => {
    try {
      const document = file ? readDocument(await readText(file), file, env) : undefined;
      last = document ? checkDocument(document) : {};
      where = document?.where;
    } catch (thrown) {
      if (!last) throw thrown;
    }
    const files = await Promise.all(policies.map(async (name) => ({ name, text: await readText(name) })));
    const rules = last.rules ?? (files.length > 0 ? undefined : FIRST_RULES);
    const locate = last.rules && where && locateRules(where);
    return { ...(rules && { rules, rulesName: file ?? 'built-in rules' }), ...(locate && { locate }), files };
  };
}

/** Line and column of a rule in the configuration file. */
function locateRules(where: Where): NonNullable<Sources['locate']> {
  return (path, atKey) => {
    const [, line, column] = /:(\d+):(\d+)$/.exec(where(['rules', ...path.map(String)], atKey)) ?? [];
    return line && column ? { line: Number(line), column: Number(column) } : undefined;
  };
}

/**
 * Rules pinned for the working directory come last, so that among equals the user's own rule is the one reported. The
 * pins are read again each time; while they cannot be read, the last ones stay in force.
 */
function withPinned(load: () => Promise<Sources>, pinned: (() => Promise<readonly PolicyFile[]>) | undefined) {
  if (!pinned) return load;
  return async (): Promise<Sources> => {
    const own = await load();
    return { ...own, files: [...own.files, ...(await pinned())] };
  };
}

function pinnedOf(path: string, trustFile: string): () => Promise<readonly PolicyFile[]> {
  let last: readonly PolicyFile[] | undefined;
  return async () => {
    try {
      last = await pinnedRules(path, trustFile);
    } catch (thrown) {
      if (!last) throw thrown;
    }
    return last;
  };
}

function durationAt(text: string | undefined, path: readonly string[], where: Where): number | undefined {
  if (text === undefined) return undefined;
  const ms = durationMs(text);
  if (ms === undefined)
    throw wrong(where(path), `${path.join('.')}: ${text} is not a duration; write 30s, 10m, 12h or 30d`);
  return ms;
}

const YEAR_MS = 365 * 24 * 3600 * 1000;

function tlsOf(
  { cert, key, min_version = '1.2', hsts }: NonNullable<NonNullable<ConfigFile['listen']>['tls']>,
  at: (path: string) => string,
  duration: (text: string | undefined, ...path: string[]) => number | undefined,
): TlsFiles {
  const ms = hsts === false ? 0 : (duration(hsts, 'listen', 'tls', 'hsts') ?? YEAR_MS);
  return { cert: at(cert), key: at(key), minVersion: `TLSv${min_version}`, hstsSeconds: Math.floor(ms / 1000) };
}
