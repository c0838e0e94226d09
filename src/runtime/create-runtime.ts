/**
 * The only composition of a running process: loads and watches rules and configuration, declares personas, quotas and a
 * workspace, mounts harnesses (or everything the configuration names), recovers interrupted work; closes in the
 * opposite order. Commands differ in the parts they add and in what they open on it.
 */
import { createVaultAccess } from '../auth/vault-access.ts';
import { createSecrets, createSecretWriter } from '../auth/vaults.ts';
import { RESULT_LIMITS } from '../core/actions/calls/result-size.ts';
import { createIds, systemClock } from '../core/clock.ts';
import { createRedactor, type Redactor } from '../core/redaction/redact.ts';
import { createSecretNames } from '../core/redaction/secret-names.ts';
import type { Settings } from '../core/settings.ts';
import type { Recovered } from '../core/tasks/recovery.ts';
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/values/own.ts';
import type {
  Adapter,
  AgentBackend,
  Bridge,
  Closable,
  Deps,
  Ids,
  Logger,
  PolicyEngine,
  ToolBackend,
} from '../ports/index.ts';
import { createHttpHost } from '../transport/http/server.ts';
import { capChildren } from '../transport/process/child.ts';
import { type CoreRuntime, openCoreRuntime, type Parts } from './assemble.ts';
import { closeAll } from './close.ts';
import type { Config } from './config/config.ts';
import { hidingEnvironment } from './config/environment.ts';
import { requireRules } from './console/rules-on-record.ts';
import type { Installation } from './installation/installation.ts';
import { createLiveConfig } from './live-config.ts';
import { declare } from './mounts/declared-resources.ts';
import { type Mounts, mountsOf, toolPolicyOf } from './mounts/mounts.ts';
import { createNameCheck } from './mounts/name-check.ts';
import { createParts } from './mounts/parts.ts';
import { createRefusedFrames } from './refused-frames.ts';
import { haveWorkspace } from './workspace.ts';

/** Made by the command, which needs them before the runtime exists and after it is closed. */
export interface Surroundings {
  readonly redactor: Redactor;
  readonly logger: Logger;
  readonly ids: Ids;
}

export function createSurroundings(logger: (redactor: Redactor) => Logger): Surroundings {
  const redactor = createRedactor();
  return { redactor, logger: logger(redactor), ids: createIds() };
}

/** Available before anything is opened. */
export interface Services extends Surroundings {
  readonly deps: Deps;
  /** The bridge of this runtime. Throws while it is not open yet: nothing may use it before. */
  bridge(): Bridge;
}

export interface RuntimeOptions<P extends Prepared = Prepared> extends Surroundings {
  /** Keys, sign-ins and switches, if the command has opened them. */
  readonly installation?: Installation;
  /** The actor id of the process when it acts by itself: `system:<name>`. */
  readonly name: string;
  /** Which parts of the configuration are mounted: agents, tools and harnesses, or only the harnesses. */
  readonly mounts: 'everything' | 'harnesses';
  /** Which protocols are spoken. Loaded when they are needed, unless given. */
  readonly adapters?: readonly Adapter[];
  /** Makes the parts this command adds, before anything is opened; returned as `prepared`. */
  readonly prepare: (services: Services) => P | Promise<P>;
  readonly settings?: Partial<Settings>;
  /** The process serves many callers for a long time. */
  readonly serving?: boolean;
  /** Called with each configuration that comes into force after the first. Returns the paths it changed. */
  readonly taken?: (config: Config) => readonly string[];
}

export interface Prepared {
  readonly backends?: readonly AgentBackend[];
  readonly tools?: readonly ToolBackend[];
  /** Beside those of the configuration, which they precede. */
  readonly settings?: Partial<Settings>;
  /** For doors and backends, instead of those of the services: a server to listen on, an authenticator. */
  readonly deps?: Deps;
  /** Wraps the mounted parts, and the bridge, in telemetry. */
  readonly instrument?: Instrument | undefined;
}

export interface Instrument extends Closable {
  parts(parts: Parts): Parts;
  bridge(bridge: Bridge): Bridge;
}

export interface Runtime<P extends Prepared = Prepared> extends Closable, Surroundings {
  readonly prepared: P;
  readonly deps: Deps;
  readonly bridge: Bridge;
  readonly core: CoreRuntime;
  /** The process itself, for set-up and maintenance. */
  readonly actor: Actor;
  /** The checked section of this door; empty when the configuration has none. */
  section(door: string): Promise<object>;
  /** Refuses when the door or the relay of this protocol names an unknown persona. */
  requireNames(protocol: string): Promise<void>;
  readonly recovered: Recovered;
  config(): Config;
}

export async function createRuntime<P extends Prepared>(
  config: Config,
  options: RuntimeOptions<P>,
): Promise<Runtime<P>> {
  try {
    return await open(config, options);
  } catch (thrown) {
    throw hidingEnvironment(thrown, config.environment);
  }
}

async function open<P extends Prepared>(config: Config, options: RuntimeOptions<P>): Promise<Runtime<P>> {
  const actor: Actor = { id: `system:${options.name}`, kind: 'system', scopes: ['*'] };
  const { redactor, logger, ids } = options;
  learnSecrets(config, redactor);
  if (config.limits.children !== undefined) capChildren(config.limits.children);
  /** Set once, below, when the store and core are open. */
  const opened: { core?: CoreRuntime; bridge?: Bridge } = {};
  const core = () => opened.core ?? notOpen();
  const bridge = () => opened.bridge ?? notOpen();

  /** The configuration as first read, until the live one exists. */
  let current = () => config;
  const refusedFrames = createRefusedFrames({
    now: () => performance.now(),
    write: (event) => {
      opened.core?.log
        .commit({ decide: () => ({ events: [event] }) })
        .catch((cause) => logger.warn({ err: cause }, 'a refused frame could not be written down'));
    },
  });

  const secretDeps = { vaults: config.vaults, env: process.env, learn: redactor.learn };
  const base: Deps = {
    log: logger,
    clock: systemClock,
    ids,
    secret: createSecrets(secretDeps),
    learn: redactor.learn,
    ...createSecretWriter({ ...secretDeps, clock: systemClock }),
    http: createHttpHost({ requestId: () => ids.next('req'), log: logger }),
    authenticate: () => Promise.reject(new Fault('unauthenticated', 'there is no door here')),
    jwks: () => core().keyring.jwks(),
    sign: (text) => core().keyring.signer().sign(text),
    mac: (text) => core().keyring.signer().mac(text),
    retentionMs: () => current().keepEventsMs,
    permissions: {
      version: () => core().permissions.version(),
      check: (act) => core().permissions.check(act),
      requireSound: (rule) => core().permissions.requireSound(rule),
    },
    trouble: () => core().store.trouble(),
    lease: (name) => core().store.lease(name),
    refused: (frame) => refusedFrames.note(frame),
  };
  const plain: Services = { redactor, logger, ids, deps: base, bridge };
  const prepared = await options.prepare(plain);
  const { backends = [], tools = [], deps = base, instrument } = prepared;
  const own = { backends, tools };
  const mounting = createMounting(options);
  const parts = createParts(deps);
  const live = createLiveConfig(config, logger);
  current = () => live.current();
  /** In closing order; the core runtime is opened below. */
  const closing = () => [
    live,
    ...(opened.core ? [refusedFrames, opened.core] : []),
    parts,
    ...(instrument ? [instrument] : []),
  ];
  const dressed = (parts: Parts): Parts => instrument?.parts(parts) ?? parts;
  try {
    const first = parts.take(await mounting.of(config), own);
    const made = await openCoreRuntime({
      dataDir: config.dataDir,
      store: config.store,
      installation: options.installation,
      sharedFiles: config.sharedFiles,
      policy: { load: () => live.current().policy.load() },
      upToDate: () => live.upToDate(),
      vaultAccess: createVaultAccess(config.vaults),
      logger,
      redactor,
      ids,
      ...dressed(first),
      ...(options.serving && { serving: true }),
      settings: {
        ...(config.limits.resultSize && { resultLimits: { ...RESULT_LIMITS, size: config.limits.resultSize } }),
        ...(config.autonomy && { defaultTier: config.autonomy }),
        ...(config.askExpiresMs && { askExpiresMs: config.askExpiresMs }),
        readsInOneCommit: config.readsInOneCommit,
        ...options.settings,
        ...prepared.settings,
      },
    });
    opened.bridge = instrument?.bridge(made.bridge) ?? made.bridge;
    opened.core = { ...made, bridge: opened.bridge };
    await requireRules(made.policy);
    await haveWorkspace(bridge(), actor);
    // Before recovery: interrupted work continues under the personas and quotas of today's configuration.
    await declare(bridge(), actor, config, systemClock);
    const names = createNameCheck({ bridge: bridge(), actor, policy: made.policy, logger, doors: mounting.doors });
    if (options.mounts === 'everything') await names.requireDoors(config);
    await names.warn(config);
    const recovered = await made.start();
    const listening = new WeakSet<PolicyEngine>();
    const listen = (engines: readonly PolicyEngine[]) => {
      for (const engine of engines) if (!listening.has(engine)) engine.listen?.(bridge(), actor);
      for (const engine of engines) listening.add(engine);
    };
    listen(first.engines);
    live.follow({
      log: made.log,
      async reloadRules() {
        await made.policy.reload();
        await names.warn(live.current());
      },
      async take(next) {
        learnSecrets(next, redactor);
        const now = parts.take(await mounting.of(next), own);
        made.remount({ ...dressed(now), defaultTier: next.autonomy ?? DEFAULT_TIER });
        now.settle();
        listen(now.engines);
        const tier = next.autonomy === live.current().autonomy ? [] : ['autonomy'];
        const declared = await declare(bridge(), actor, next, systemClock);
        return [...now.changed, ...declared, ...tier, ...(options.taken?.(next) ?? [])];
      },
    });
    let closed: Promise<void> | undefined;
    return {
      redactor,
      logger,
      ids,
      prepared,
      deps,
      bridge: bridge(),
      core: core(),
      actor,
      recovered,
      requireNames: (protocol) => names.requireDoors(config, protocol),
      async section(door) {
        await names.requireDoors(config, door);
        return await mounting.section(config, door);
      },
      config: () => live.current(),
      close: () => {
        closed ??= closeAll(closing(), logger);
        return closed;
      },
    };
  } catch (cause) {
    await closeAll(closing(), logger);
    throw cause;
  }
}

/** Without a persona and without `autonomy` in the configuration the rules alone decide. */
const DEFAULT_TIER = 'act_auto';

function notOpen(): never {
  throw new Fault('unavailable', 'the runtime is not open yet');
}

/** A variable whose name looks like a secret's holds one, wherever the configuration uses it. */
function learnSecrets({ environment }: Config, redactor: Redactor): void {
  const names = createSecretNames();
  for (const [name, value] of environment) if (names.member(name)) redactor.learn(value);
}

/** The parts a configuration mounts. Adapters are loaded only when the configuration names a part of one. */
function createMounting({ adapters: configured, mounts }: Pick<RuntimeOptions, 'adapters' | 'mounts'>) {
  const adapters = async () => configured ?? (await import('../../adapters/index.ts')).adapters;
  const NOTHING: Mounts = { doors: [], agents: [], tools: [], harnesses: [], terms: new Map() };
  return {
    async of(config: Config): Promise<Mounts> {
      if (mounts === 'everything') return mountsOf(config, await adapters());
      if (Object.keys(config.harnesses).length === 0) return { ...NOTHING, harnesses: toolPolicyOf(config) };
      return { ...NOTHING, harnesses: mountsOf(config, await adapters()).harnesses };
    },
    /** Names of all doors; undefined while the adapters are not loaded. */
    doors: () => configured?.flatMap(({ name, parts }) => (parts.door ? [name] : [])),
    async section(config: Config, door: string): Promise<object> {
      if (!own(config.doors, door)) return {};
      const { doors } = mountsOf(config, await adapters());
      return doors.find(({ name }) => name === door)?.section ?? {};
    },
  };
}
