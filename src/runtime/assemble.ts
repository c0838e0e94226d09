/**
 * The composition root: assembles every part of the runtime from a configuration and closes the parts in order. No
 * logic lives here.
 */

import { join } from 'node:path';
import { createPermissions } from '../core/actions/permissions.ts';
import { createPolicyData } from '../core/actions/policy-data.ts';
import { createIds, systemClock } from '../core/clock.ts';
import { type Core, createCore } from '../core/create-core.ts';
import { createLog, type Log } from '../core/events/log.ts';
import { projector } from '../core/events/projector.ts';
import { cleanLogger } from '../core/redaction/clean-logger.ts';
import { createRedactor, type Redactor } from '../core/redaction/redact.ts';
import type { Settings } from '../core/settings.ts';
import { Fault } from '../model/faults.ts';
import { VERSION } from '../model/version.ts';
import type { AutonomyTier } from '../model/words.ts';
import { createPolicyChain } from '../policy/chain.ts';
import { createPersonaEngine } from '../policy/persona.ts';
import { createQuotaEngine, quotaRules } from '../policy/quota.ts';
import { createRememberedAnswers } from '../policy/remembered.ts';
import type { Sources } from '../policy/rules/load.ts';
import { createReloadablePolicy, type ReloadablePolicy } from '../policy/rules/reload.ts';
import type {
  AgentBackend,
  AgentTerms,
  Clock,
  Committed,
  Ids,
  Logger,
  Permissions,
  PolicyEngine,
  PrivateFiles,
  ReceiptIssuer,
  Signer,
  Store,
  ToolBackend,
  VaultAccess,
} from '../ports/index.ts';
import { createIssuer } from '../receipt/build/issuer.ts';
import { createRecentLeaves, type RecentLeaves } from '../receipt/merkle/recent-leaves.ts';
import { comparableHash, comparableText } from '../receipt/seal/canonical-json.ts';
import type { Keyring } from '../receipt/seal/keys.ts';
import { createStoredVerifier } from '../receipt/verify/stored.ts';
import { readFileText } from '../store/file-text.ts';
import {
  hasPrivateFiles,
  isDatabase,
  type OpenStore,
  openStore,
  type StoreLocation,
  storeName,
} from '../store/index.ts';
import { noteChange, rulesOnRecord } from './console/rules-on-record.ts';
import { type Installation, type InstallationOptions, openInstallation } from './installation/installation.ts';
import { createLargeValues } from './large-values.ts';
import { openAgentSwitches } from './mounts/agent-switches.ts';
import { readAct } from './read-act.ts';

export interface Parts {
  readonly backends: readonly AgentBackend[];
  readonly tools: readonly ToolBackend[];
  readonly engines: readonly PolicyEngine[];
  /** What the configuration says about agents. Absent: as before. */
  readonly terms?: ReadonlyMap<string, AgentTerms>;
  /** Tier for work without a persona. Absent: the tier stays as it was. */
  readonly defaultTier?: AutonomyTier;
}

export interface CoreRuntimeOptions {
  /** The directory of everything the runtime writes: the log, the keys, the leases. */
  readonly dataDir: string;
  /** Location of the log, when it is not `log.db` in `dataDir`. */
  readonly store?: StoreLocation;
  /** Keys, sign-ins and switches, if they are open already. Absent: those of `sharedFiles`, or of `dataDir`. */
  readonly installation?: Installation | undefined;
  readonly sharedFiles?: InstallationOptions['sharedFiles'];
  /** The process serves many callers for a long time. */
  readonly serving?: boolean;
  /**
   * `'on record'`: the process brings no rules; the rules recorded in the data directory decide, and it records none.
   */
  readonly policy?: { readonly load: () => Promise<Sources>; readonly watch?: readonly string[] } | 'on record';
  /** External engines, asked after the built-in rules. */
  readonly engines?: readonly PolicyEngine[];
  readonly backends?: readonly AgentBackend[];
  readonly tools?: readonly ToolBackend[];
  readonly terms?: ReadonlyMap<string, AgentTerms>;
  readonly settings?: Partial<Settings>;
  /** Grants: which principal may use which secret. Absent: work without a tenant may use any. */
  readonly vaultAccess?: VaultAccess;
  /** Resolves when a change of the configuration's files is in force; undefined when no file changed. */
  readonly upToDate?: () => Promise<void> | undefined;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly redactor?: Redactor;
  /** For tests that replace one part. */
  readonly replace?: {
    readonly openStore?: OpenStore;
    readonly store?: (store: Store) => Store;
    readonly signer?: Signer;
    readonly issuer?: ReceiptIssuer;
  };
}

export interface CoreRuntime extends Omit<Core, 'remount'> {
  /**
   * From now on these agents, tools and external engines are used. Work that has begun stays with the part that began
   * it.
   */
  remount(parts: Parts): void;
  readonly store: Store;
  /** Writes events of the process itself, without secrets; nothing else may commit to the store. */
  readonly log: Pick<Log, 'commit'>;
  /** Leaves of the events committed by this process, for the tree over the log. */
  readonly leaves: RecentLeaves;
  readonly keyring: Keyring;
  readonly files: PrivateFiles;
  readonly policy: ReloadablePolicy;
  readonly permissions: Permissions;
  readonly redactor: Redactor;
}

export async function openCoreRuntime(options: CoreRuntimeOptions): Promise<CoreRuntime> {
  if (options.installation) return await assemble(options, options.installation);
  const installation = await openInstallation(options);
  try {
    const runtime = await assemble(options, installation);
    return { ...runtime, close: () => runtime.close().finally(installation.close) };
  } catch (cause) {
    await installation.close();
    throw cause;
  }
}

/** Signing with keys of its own beside those that all others share would leave receipts that the others cannot verify. */
async function requireTheirKeys(store: StoreLocation | undefined): Promise<void> {
  if (!store || !isDatabase(store) || store.keys || !(await hasPrivateFiles(store))) return;
  throw new Fault(
    'invalid_request',
    `keys of the gateways lie in ${storeName(store)}, sealed under a secret: name it with store.keys`,
    { param: 'store.keys' },
  );
}

async function assemble(options: CoreRuntimeOptions, installation: Installation): Promise<CoreRuntime> {
  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? createIds();
  const redactor = options.redactor ?? createRedactor();
  const large = createLargeValues(redactor);
  const logger = cleanLogger(options.logger ?? SILENT, redactor);
  const { files } = installation;
  await requireTheirKeys(options.store);
  const keyring = await installation.keyring(clock);
  const signer = options.replace?.signer ?? keyring.signer();
  const location = teaching(options.store ?? { path: join(options.dataDir, 'log.db') }, redactor.learn);
  const { serving = false, replace } = options;
  const opened = await (replace?.openStore ?? openStore)(location, { clock, projector, log: logger, serving });
  const store = options.replace?.store?.(opened) ?? opened;
  const log = createLog({ store, redactor, ids, inlineLimit: INLINE_LIMIT });
  let noted: Promise<void> = Promise.resolve();
  const chosen = options.policy;
  const usesRecordedRules = chosen === 'on record';
  let latest: Sources = { files: [] };
  let core: Core | undefined;
  const own: readonly PolicyEngine[] = [createPersonaEngine(), createQuotaEngine({ clock })];
  let outside = options.engines ?? [];
  /** In the order they are asked. Written by `mount` only; the chain reads it for each decision. */
  let engines: readonly PolicyEngine[] = [];
  function mount(): void {
    engines = [...own, rules.inForce(), ...outside];
  }
  const rules = createReloadablePolicy({
    read: readAct,
    load: async () => {
      latest = usesRecordedRules ? await rulesOnRecord(files, store) : ((await chosen?.load()) ?? { files: [] });
      return latest;
    },
    onChange: (change) => {
      // Errors of the first load go to the caller that opens the runtime, which can still decide not to.
      if (change.errors.length > 0 && change.version !== undefined) {
        logger.error({ errors: change.errors }, 'the new policy was refused; the old one stays in force');
      }
      if (change.outcome === 'loaded') {
        mount();
        core?.reconsider();
      }
      if (usesRecordedRules) return;
      const read = latest;
      noted = noted
        .then(() => noteChange(files, store, log, change, read))
        .catch((cause) => logger.error({ err: cause }, 'a policy change could not be written down'));
    },
    ...(!usesRecordedRules && chosen?.watch && { watch: chosen.watch }),
  });
  await rules.reload();
  mount();
  // The rules are on record before they decide anything.
  await noted;

  const leaves = createRecentLeaves();
  const issuer =
    options.replace?.issuer ??
    createIssuer({
      signer,
      issuer: { id: 'tollbridge', kind: 'harness', name: 'Tollbridge', version: VERSION },
      source: 'tollbridge',
      leaves,
    });
  const verifier = createStoredVerifier({ store, keys: () => keyring.jwks() });
  const remembered = createRememberedAnswers({ store, read: readAct, clock });
  const policy = createPolicyChain({ engines: () => engines, remembered });
  const made = createCore({
    store: noticing(store, 'permission_rule', () => remembered.refresh()),
    policy,
    requireSound: remembered.requireSound,
    quotas: quotaRules,
    // Values that callers send may have no canonical spelling; they still have to be compared.
    issuer: { ...issuer, hash: comparableHash },
    verify: async (stored, how) => await verifier(stored, how),
    signer,
    canonical: comparableText,
    redactor,
    cleanLarge: large.clean,
    backends: options.backends ?? [],
    tools: options.tools ?? [],
    ...(options.terms && { terms: options.terms }),
    switchedOff: openAgentSwitches(files).reason,
    read: readAct,
    clock,
    ids,
    logger,
    pendingActs: installation.pendingActs(signer),
    readFile: readFileText,
    ...(options.settings && { settings: options.settings }),
    ...(options.upToDate && { upToDate: options.upToDate }),
    ...(options.vaultAccess && { vaultAccess: options.vaultAccess }),
  });

  core = made;
  await remembered.refresh();
  const policyData = createPolicyData(store, () => options.settings?.defaultTier ?? 'act_auto');
  return {
    ...made,
    permissions: createPermissions({
      policy: { decide: policy.decide, requireSound: remembered.requireSound },
      policyData,
      read: readAct,
      ids,
      version: () => rules.version ?? '',
    }),
    store,
    log,
    leaves,
    keyring,
    files,
    policy: {
      ...rules,
      get version() {
        return rules.version;
      },
      get mentions() {
        return rules.mentions;
      },
      /** Resolves once the change is on record as well. */
      async reload() {
        const change = await rules.reload();
        await noted;
        return change;
      },
    },
    redactor,
    remount(parts) {
      // The engines first: an engine that is no longer mounted may not decide on a part that is mounted now.
      outside = parts.engines;
      mount();
      made.remount(parts);
    },
    async close() {
      await made.close();
      await remembered.close();
      await rules.close();
      await noted;
      await store.close();
      await large.close();
    },
  };
}

/**
 * The same store; after each commit that changed a resource of this kind, `changed` is awaited before the commit
 * resolves.
 */
function noticing(store: Store, object: string, changed: () => Promise<void>): Store {
  const noticed = (done: Committed): Committed | Promise<Committed> => {
    for (const { resource } of done.events) if (resource.object === object) return changed().then(() => done);
    return done;
  };
  const commit: Store['commit'] = (unit) => store.commit(unit).then(noticed);
  return Object.assign(Object.create(store) as Store, { commit });
}

/** Longer payloads of the process's own events would be stored apart from the event; none is that long. */
const INLINE_LIMIT = 64 * 1024;

const SILENT: Logger = { info() {}, warn() {}, error() {} };

/** The password of a database is known to the redactor before it is used. */
function teaching(location: StoreLocation, learn: (value: string) => void): StoreLocation {
  if (!isDatabase(location) || typeof location.password !== 'function') return location;
  const { password } = location;
  return {
    ...location,
    async password() {
      const value = await password();
      learn(value);
      return value;
    },
  };
}
