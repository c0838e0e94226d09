/**
 * The only composition of a running process: rules and configuration loaded and watched, personas, quotas and a workspace
 * declared, harnesses (or everything the configuration names) mounted, interrupted work recovered; taken apart again in
 * order. Commands differ in what they bring along and in what they open on it.
 */
import { createKeeper, createSecrets } from '../auth/vaults.ts';
import { type House, openHouse, type Parts } from '../compose.ts';
import type { Config } from '../config.ts';
import { hidingEnvironment } from '../config-environment.ts';
import type { Settings } from '../core/bridge.ts';
import { createIds, systemClock } from '../core/clock.ts';
import type { Recovered } from '../core/recovery.ts';
import { createRedactor, type Redactor } from '../core/redact.ts';
import { RESULT_LIMITS } from '../core/result-size.ts';
import { createSecretNames } from '../core/secret-names.ts';
import { declare } from '../declare.ts';
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/own.ts';
import { type Mounts, mountsOf } from '../mounts.ts';
import { createParts } from '../parts.ts';
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
} from '../ports.ts';
import { requireRules } from '../rules-on-record.ts';
import { capChildren } from '../wire/child.ts';
import { createHttpHost } from '../wire/http.ts';
import { closeAll } from './close.ts';
import { createLiveConfig } from './live-config.ts';
import { createNameCheck } from './name-check.ts';
import { haveWorkspace } from './workspace.ts';

/** Made by the command, because it needs them before there is a runtime and after it is gone. */
export interface Surroundings {
  readonly redactor: Redactor;
  readonly logger: Logger;
  readonly ids: Ids;
}

export function createSurroundings(logger: (redactor: Redactor) => Logger): Surroundings {
  const redactor = createRedactor();
  return { redactor, logger: logger(redactor), ids: createIds() };
}

/** What is there before anything is opened. */
export interface Services extends Surroundings {
  readonly deps: Deps;
  /** The bridge of this runtime. A fault while it is not open yet: nothing may use it before. */
  bridge(): Bridge;
}

export interface RuntimeOptions<P extends Prepared = Prepared> extends Surroundings {
  /** The process as the log names it when it acts by itself: `system:<name>`. */
  readonly name: string;
  /** What of the configuration is mounted: agents, tools and harnesses, or only the harnesses. */
  readonly mounts: 'everything' | 'harnesses';
  /** Which protocols are spoken. Loaded when they are needed, unless given. */
  readonly adapters?: readonly Adapter<never>[];
  /** What this command brings along, made before anything is opened; handed back as `prepared`. */
  readonly prepare: (services: Services) => P | Promise<P>;
  readonly settings?: Partial<Settings>;
  /** So much of the log's growth is paid for when it opens, and not by the first requests. */
  readonly roomBytes?: number;
  /** False for a process that takes up no work: nothing is recovered. */
  readonly recovers?: boolean;
  /** Called with each configuration that comes into force after the first. Returns what it changed. */
  readonly taken?: (config: Config) => readonly string[];
}

export interface Prepared {
  readonly backends?: readonly AgentBackend[];
  readonly tools?: readonly ToolBackend[];
  /** For doors and backends, instead of those of the services: a server to listen on, a way to tell who calls. */
  readonly deps?: Deps;
  /** Wraps what is mounted, and the bridge, in measurements. */
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
  readonly house: House;
  /** The process itself, when it sets something up or looks after it. */
  readonly actor: Actor;
  /** What the configuration says to the door of this name, checked; empty when it says nothing. */
  section(door: string): Promise<object>;
  /** Refuses when the door or the relay of this protocol names a persona that is not there. */
  requireNames(protocol: string): Promise<void>;
  readonly recovered: Recovered;
  config(): Config;
}

const NOTHING_RECOVERED: Recovered = { resumed: 0, started: 0, failed: 0 };

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
  /** Filled once, below, when the store and core are open. */
  const opened: { house?: House; bridge?: Bridge } = {};
  const house = () => opened.house ?? notOpen();
  const bridge = () => opened.bridge ?? notOpen();

  const places = { vaults: config.vaults, env: process.env, learn: redactor.learn };
  const base: Deps = {
    log: logger,
    clock: systemClock,
    ids,
    secret: createSecrets(places),
    ...createKeeper({ ...places, clock: systemClock }),
    http: createHttpHost({ requestId: () => ids.next('req'), log: logger }),
    authenticate: () => Promise.reject(new Fault('unauthenticated', 'there is no door here')),
    jwks: () => house().keyring.jwks(),
    sign: (text) => house().keyring.signer().sign(text),
    mac: (text) => house().keyring.signer().mac(text),
    trouble: () => house().store.trouble(),
    lease: (name) => house().store.lease(name),
  };
  const plain: Services = { redactor, logger, ids, deps: base, bridge };
  const prepared = await options.prepare(plain);
  const { backends = [], tools = [], deps = base, instrument } = prepared;
  const own = { backends, tools };
  const mounting = createMounting(options);
  const parts = createParts(deps);
  const live = createLiveConfig(config, logger);
  const closing: Closable[] = [live, parts, ...(instrument ? [instrument] : [])];
  const dressed = (given: Parts): Parts => instrument?.parts(given) ?? given;
  try {
    const first = parts.take(await mounting.of(config), own);
    const made = await openHouse({
      dataDir: config.dataDir,
      place: config.store,
      policy: { load: () => live.current().policy.load() },
      upToDate: () => live.upToDate(),
      logger,
      redactor,
      ids,
      ...dressed(first),
      ...(options.roomBytes !== undefined && { roomBytes: options.roomBytes }),
      settings: {
        ...(config.limits.resultSize && { resultLimits: { ...RESULT_LIMITS, size: config.limits.resultSize } }),
        ...(config.autonomy && { defaultTier: config.autonomy }),
        ...(config.askExpiresMs && { askExpiresMs: config.askExpiresMs }),
        ...(config.limits.resultSize && { resultLimits: { ...RESULT_LIMITS, size: config.limits.resultSize } }),
        ...options.settings,
      },
    });
    closing.splice(1, 0, made);
    opened.bridge = instrument?.bridge(made.bridge) ?? made.bridge;
    opened.house = { ...made, bridge: opened.bridge };
    await requireRules(made.policy);
    await haveWorkspace(bridge(), actor);
    // Before anything is taken up again: interrupted work goes on under the personas and quotas of today.
    await declare(bridge(), actor, config, systemClock);
    const names = createNameCheck({ bridge: bridge(), actor, policy: made.policy, logger, doors: mounting.doors });
    if (options.mounts === 'everything') await names.requireDoors(config);
    await names.warn(config);
    const recovered = options.recovers === false ? NOTHING_RECOVERED : await made.start();
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
      house: house(),
      actor,
      recovered,
      requireNames: (protocol) => names.requireDoors(config, protocol),
      async section(door) {
        await names.requireDoors(config, door);
        return await mounting.section(config, door);
      },
      config: () => live.current(),
      close: () => {
        closed ??= closeAll(closing, logger);
        return closed;
      },
    };
  } catch (cause) {
    await closeAll(closing, logger);
    throw cause;
  }
}

/** Without a persona and without a word in the configuration the rules alone decide. */
const DEFAULT_TIER = 'act_auto';

function notOpen(): never {
  throw new Fault('unavailable', 'the runtime is not open yet');
}

/** A variable whose name promises a secret holds one, wherever the configuration puts it. */
function learnSecrets({ environment }: Config, redactor: Redactor): void {
  const names = createSecretNames();
  for (const [name, value] of environment) if (names.member(name)) redactor.learn(value);
}

/** What a configuration mounts. Adapters are loaded only when it names something that is reached through one. */
function createMounting({ adapters: given, mounts }: Pick<RuntimeOptions, 'adapters' | 'mounts'>) {
  const adapters = async () => given ?? (await import('../../adapters/index.ts')).adapters;
  const NOTHING: Mounts = { doors: [], agents: [], tools: [], harnesses: [] };
  return {
    async of(config: Config): Promise<Mounts> {
      if (mounts === 'everything') return mountsOf(config, await adapters());
      if (Object.keys(config.harnesses).length === 0) return NOTHING;
      return { ...NOTHING, harnesses: mountsOf(config, await adapters()).harnesses };
    },
    /** Names of doors there can be; undefined while the adapters are not loaded. */
    doors: () => given?.map(({ name }) => name),
    async section(config: Config, door: string): Promise<object> {
      if (!own(config.doors, door)) return {};
      const { doors } = mountsOf(config, await adapters());
      return doors.find(({ adapter }) => adapter.name === door)?.section ?? {};
    },
  };
}
