/**
 * The composition root: every part of the house put together from a configuration, and taken apart again in order.
 * No logic lives here.
 */
import { join } from 'node:path';
import type { StorePlace } from './config-store.ts';
import { type Core, type CoreDeps, createCore, type Settings } from './core/bridge.ts';
import { cleanLogger } from './core/clean-logger.ts';
import { createIds, systemClock } from './core/clock.ts';
import { createLog, type Log } from './core/log.ts';
import { projector } from './core/projector.ts';
import { createRedactor, type Redactor } from './core/redact.ts';
import { createLargeValues } from './large-values.ts';
import type { Action } from './model/actions.ts';
import type { JsonObject } from './model/schema.ts';
import type { AutonomyTier } from './model/words.ts';
import { createPolicyChain } from './policy/chain.ts';
import type { Sources } from './policy/load.ts';
import { createPersonaEngine } from './policy/persona.ts';
import { budgetOf, charge, createQuotaEngine } from './policy/quota.ts';
import { createReloadablePolicy, type PolicyChange, type ReloadablePolicy } from './policy/reload.ts';
import type {
  AgentBackend,
  Clock,
  Ids,
  Logger,
  PolicyEngine,
  QuotaRules,
  ReceiptIssuer,
  Signer,
  Store,
  ToolBackend,
} from './ports.ts';
import { readAct } from './read-act.ts';
import { comparableText, hashBytes } from './receipt/canonical-json.ts';
import { createIssuer } from './receipt/issuer.ts';
import { type Keyring, openKeyring } from './receipt/keys.ts';
import { createStoredVerifier } from './receipt/verify-stored.ts';
import { keepRules, lastChange, RULES, rulesOnRecord } from './rules-on-record.ts';
import { readFileText } from './store/file-text.ts';
import { pendingActsIn } from './store/pending-acts.ts';
import { createSqliteStore } from './store/sqlite.ts';
import { VERSION } from './version.ts';

export interface Parts {
  readonly backends: readonly AgentBackend[];
  readonly tools: readonly ToolBackend[];
  readonly engines: readonly PolicyEngine[];
  /** For work without a persona; as it was when absent. */
  readonly defaultTier?: AutonomyTier;
}

export interface HouseOptions {
  /** Everything the house writes is below here: the log, the keys, the leases. */
  readonly dataDir: string;
  /** The log, when it is not simply `log.db` in there. */
  readonly place?: StorePlace;
  /** For a house that serves: so much of the log's growth is paid for when it opens, and not by the first who ask. */
  readonly roomBytes?: number;
  /** A visitor brings no rules: it is judged by those on record, and leaves none there. */
  readonly policy?: { readonly load: () => Promise<Sources>; readonly watch?: readonly string[] } | 'on record';
  /** Engines outside the house, asked after its own rules. */
  readonly engines?: readonly PolicyEngine[];
  readonly backends?: readonly AgentBackend[];
  readonly tools?: readonly ToolBackend[];
  readonly settings?: Partial<Settings>;
  /** Resolves when what changed in the configuration's files holds here; undefined when nothing did. */
  readonly upToDate?: () => Promise<void> | undefined;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly redactor?: Redactor;
  /** For tests that need one part to be another. */
  readonly replace?: {
    readonly store?: (store: Store) => Store;
    readonly signer?: Signer;
    readonly issuer?: ReceiptIssuer;
  };
}

export interface House extends Omit<Core, 'remount'> {
  /** From now on these agents, tools and outside engines. What has begun goes on with whoever began it. */
  remount(parts: Parts): void;
  readonly store: Store;
  /** Writes events of the process itself, without secrets; nothing else may commit to the store. */
  readonly log: Pick<Log, 'commit'>;
  readonly keyring: Keyring;
  readonly policy: ReloadablePolicy;
  readonly redactor: Redactor;
}

/** As long as the write-ahead log ever gets between checkpoints. */
export const SERVING_ROOM = 16_500_000;
/** From so many who wait at once, it is quicker to have another thread write. */
const SERVING_CROWD = { units: 8, times: 64 };

export async function openHouse(options: HouseOptions): Promise<House> {
  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? createIds();
  const redactor = options.redactor ?? createRedactor();
  const large = createLargeValues(redactor);
  const logger = cleanLogger(options.logger ?? SILENT, redactor);
  const keyring = await openKeyring({ dir: join(options.dataDir, 'keys'), now: () => clock.now() });
  const signer = options.replace?.signer ?? keyring.signer();
  const opened = await createSqliteStore({
    path: join(options.dataDir, 'log.db'),
    ...options.place,
    clock,
    projector,
    log: logger,
    ...(options.roomBytes !== undefined && { roomBytes: options.roomBytes, crowd: SERVING_CROWD }),
  });
  const store = options.replace?.store?.(opened) ?? opened;
  const log = createLog({ store, redactor, ids, inlineLimit: INLINE_LIMIT });
  let noted: Promise<void> = Promise.resolve();
  const given = options.policy;
  const visiting = given === 'on record';
  let latest: Sources = { files: [] };
  let core: Core | undefined;
  const rules = createReloadablePolicy({
    read: readAct,
    load: async () => {
      latest = visiting ? await rulesOnRecord(options.dataDir, store) : ((await given?.load()) ?? { files: [] });
      return latest;
    },
    onChange: (change) => {
      // Of the first ones whoever opens the house is told, who can still decide not to.
      if (change.errors.length > 0 && change.version !== undefined) {
        logger.error({ errors: change.errors }, 'the new policy was refused; the old one stays in force');
      }
      if (change.outcome === 'loaded') core?.reconsider();
      if (visiting) return;
      const read = latest;
      noted = noted
        .then(() => noteChange(options.dataDir, store, log, change, read))
        .catch((cause) => logger.error({ err: cause }, 'a policy change could not be written down'));
    },
    ...(!visiting && given?.watch && { watch: given.watch }),
  });
  await rules.reload();
  // On record before anything is decided by them.
  await noted;

  const own: readonly PolicyEngine[] = [createPersonaEngine(), createQuotaEngine({ clock }), rules];
  /** Written by `remount` only; the chain reads it for each decision. */
  const mounted = { engines: [...own, ...(options.engines ?? [])] };
  const issuer =
    options.replace?.issuer ??
    createIssuer({
      signer,
      issuer: { id: 'tollbridge', kind: 'harness', name: 'Tollbridge', version: VERSION },
      source: 'tollbridge',
    });
  const verifier = createStoredVerifier({ store, keys: () => keyring.jwks() });
  const made = createCore({
    store,
    policy: createPolicyChain({ engines: () => mounted.engines }),
    quotas: quotaRules,
    // What callers send may have no canonical spelling; telling it apart must work all the same.
    issuer: { ...issuer, hash: (value) => hashBytes(comparableText(value)) },
    verify: async (stored, how) => (await verifier(stored, how)) as unknown as VerifyAnswer,
    signer,
    canonical: comparableText,
    redactor,
    cleanLarge: large.clean,
    backends: options.backends ?? [],
    tools: options.tools ?? [],
    read: readAct,
    clock,
    ids,
    logger,
    pendingActs: pendingActsIn(options.dataDir, signer),
    readFile: readFileText,
    ...(options.settings && { settings: options.settings }),
    ...(options.upToDate && { upToDate: options.upToDate }),
  });

  core = made;
  return {
    ...made,
    store,
    log,
    keyring,
    policy: {
      ...rules,
      get version() {
        return rules.version;
      },
      get mentions() {
        return rules.mentions;
      },
      /** Resolves when the change is on record, too. */
      async reload() {
        const change = await rules.reload();
        await noted;
        return change;
      },
    },
    redactor,
    remount(parts) {
      // The engines first: nothing that is mounted now may be decided by those that no longer are.
      mounted.engines = [...own, ...parts.engines];
      made.remount(parts);
    },
    async close() {
      await made.close();
      await rules.close();
      await noted;
      await store.close();
      await large.close();
    },
  };
}

type VerifyAnswer = Awaited<ReturnType<CoreDeps['verify']>>;

/** The engine's own judgement, asked about one quota at the moment of the charge. */
const quotaRules: QuotaRules = {
  refuse(quota, cost, now) {
    const decision = createQuotaEngine({ clock: { now: () => now } }).judge({
      quotas: [quota],
      cost,
    } as unknown as Action);
    return decision.verdict === 'allow' ? undefined : decision;
  },
  charge,
  budget: budgetOf,
};

/** Every change leaves a trace: what is in force now, or what was refused and why. Opening the house again is no change. */
async function noteChange(
  dataDir: string,
  store: Store,
  log: Pick<Log, 'commit'>,
  change: PolicyChange,
  read: Sources,
): Promise<void> {
  if (change.outcome === 'loaded') await keepRules(dataDir, read);
  const last = await lastChange(store);
  if (change.outcome === 'loaded' && last?.outcome === 'loaded' && last.version === change.version) return;
  const event = {
    event: 'vendor.tollbridge.policy_loaded',
    resource: RULES,
    payload: change as unknown as JsonObject,
  };
  await log.commit({ decide: () => ({ events: [event] }) });
}

/** Longer events of the process itself are kept apart; none is. */
const INLINE_LIMIT = 64 * 1024;

const SILENT: Logger = { info() {}, warn() {}, error() {} };
