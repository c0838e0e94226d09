/** Joins the parts of core. This file only wires; each part is one idea with its dependencies handed in. */
import type { CoreEvent } from '../model/events.ts';
import type { Task } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';
import type { Bridge, Committed, LimitPassed } from '../ports/index.ts';
import { createAccess } from './access.ts';
import { createAlarms } from './actions/alarms.ts';
import { createArgumentsDigest } from './actions/arguments-digest.ts';
import { createActs } from './actions/execute.ts';
import { requireRoom } from './actions/free-space.ts';
import { createGate, type Gate } from './actions/gate.ts';
import { createPolicyData, type ReadPolicyData } from './actions/policy-data.ts';
import { createTaints } from './actions/taints.ts';
import { createTimeLimits, limitFailure } from './actions/time-limits.ts';
import { createAsks } from './approvals/asks.ts';
import { createChangedActs } from './approvals/changed-acts.ts';
import { createWholeActs, inMemory } from './approvals/whole-acts.ts';
import { createBridge } from './bridge.ts';
import { createMemories } from './commands/memories.ts';
import { WITHOUT_TENANT } from './commands/secret-use.ts';
import { createSessionInputs } from './commands/session-inputs.ts';
import { createAdmit } from './commands/session-opening.ts';
import type { Context } from './context.ts';
import { createLog, type Log } from './events/log.ts';
import { endsTask } from './events/projections/tasks.ts';
import { createHandlers } from './handlers.ts';
import { createInstance } from './instance.ts';
import { createMounted, type Remounted } from './mounted.ts';
import { createReplayer } from './replay/replay.ts';
import { type CoreDeps, DEFAULTS, type Settings } from './settings.ts';
import { createSweep } from './sweep.ts';
import { createEndings, type Endings } from './tasks/end-task.ts';
import { type Recovered, recover } from './tasks/recovery.ts';
import { createRunner } from './tasks/runner.ts';
import { taskHandlers } from './tasks/task-commands.ts';
import { createAcceptedEffects } from './tools/accepted.ts';
import { createCallCounts } from './tools/call-counts.ts';
import { createCallQuotas } from './tools/call-limits.ts';
import { createTools } from './tools/catalog.ts';
import { createToolChanges } from './tools/changes.ts';
import { createPins } from './tools/pins.ts';
import { createVisibleTools } from './tools/visibility.ts';

export interface Core {
  readonly bridge: Bridge;
  /** Recovers the work of dead processes. Doors open after this. */
  start(): Promise<Recovered>;
  /** Replaces the agents and tools. Tasks that have begun continue with the agent that began them. */
  remount(parts: Remounted): void;
  /** The rules have changed: watchers of the tool list are notified. */
  reconsider(): void;
  /** Resolves when no task of this process is running. */
  idle(): Promise<void>;
  /** Accepts no more work, lets running tasks end or be resumed later, and leaves the store to its owner. */
  close(): Promise<void>;
}

export function createCore(deps: CoreDeps): Core {
  const { store, clock, ids, issuer, logger } = deps;
  const settings: Settings = { ...DEFAULTS, ...deps.settings };
  const mounted = createMounted({ ...deps, ...settings });
  const { backends, defaultAgent, offReason } = mounted;
  const instance = createInstance(store, ids);
  const { servedBy, isDead } = instance;
  const closing = new AbortController();

  const toolChanges = createToolChanges(mounted.tools, store, logger, (server) => tools.again(server));
  let endings: Endings | undefined;
  const unobserved = createLog({
    store,
    redactor: deps.redactor,
    ids,
    inlineLimit: settings.inlineLimit,
    ...(deps.cleanLarge && { cleanLarge: deps.cleanLarge }),
  });
  const log: Log = { ...unobserved, commit: (unit) => unobserved.commit(unit).then(observed) };
  function observed(committed: Committed): Committed {
    if (committed.repeated) return committed;
    endings?.observe(committed.events);
    for (const event of committed.events) {
      if (event.event === 'session.closed') {
        sessionInputs.release(event.resource.id);
        mounted.release(event.resource.id);
      } else if (endsTask(event)) timeLimits.end(event.task_id ?? '');
      else if (changesLimits(event)) timeLimits.recheck();
    }
    wholeActs.closed(committed.events);
    return committed;
  }
  const vaults = deps.vaultAccess ?? WITHOUT_TENANT;
  const access = createAccess(store, vaults);
  const hash = (value: Json) => issuer.hash(value);
  const context: Context = { store, log, access, clock, ids, hash, logRoot: (events) => issuer.logRoot(events) };
  const tools = createTools(mounted.tools, hash, logger);
  const pins = createPins({ ...context, tools });
  const effectOf = createAcceptedEffects(store, hash);
  const counts = createCallCounts();
  const sessionInputs = createSessionInputs({
    access,
    clock,
    learn: (secret) => learn(secret) && deps.redactor.text(secret) !== secret,
    backends: () => backends.values(),
  });
  const digest = createArgumentsDigest(deps.canonical, (text) => deps.signer.mac(text));
  const judge = createGate({ policy: deps.policy, timeoutMs: settings.policyTimeoutMs, log: logger, digest });
  const callQuota = createCallQuotas({
    ...context,
    limitOf: (server, tool) =>
      mounted
        .tools()
        .find(({ name }) => name === server)
        ?.limit?.(tool),
  });
  const decide = requireRoom(pins.guard(judge), store, settings.resultLimits);
  const gate: Gate = (action, withinMs, tool) => {
    const pending = deps.upToDate?.();
    return pending ? pending.then(() => decide(action, withinMs, tool)) : decide(action, withinMs, tool);
  };
  const wholeActs = createWholeActs({
    ...context,
    logger,
    pending: deps.pendingActs ?? inMemory(),
    readFile: deps.readFile,
  });
  const admit = createAdmit({ log, ids, gate });
  const taints = createTaints({ store, log });
  const agentQuota = (agent: string) => mounted.terms(agent)?.quota_id;
  const readData = createPolicyData(store, mounted.defaultTier, agentQuota);
  const policyData: ReadPolicyData = (about) => {
    const pending = deps.upToDate?.();
    return pending ? pending.then(() => readData(about)) : readData(about);
  };
  const memories = createMemories(context);
  const { canonical, read } = deps;
  const changedActs = createChangedActs({ ...context, gate, policyData, read, taints, digest, canonical, wholeActs });
  const asks = createAsks({
    ...context,
    wholeActs,
    changedActs,
    signer: deps.signer,
    canonical,
    expiresMs: settings.askExpiresMs,
  });
  const acts = createActs({
    ...context,
    issuer,
    remember: memories.write,
    ...settings,
    policyData,
    callQuota,
    revision: mounted.revision,
    gate,
    asks,
    wholeActs,
    tools,
    effectOf,
    counts,
    inspect: (action, result) => deps.policy.inspect?.(action, result) ?? result,
    taints,
    digest,
    read: deps.read,
    quotas: deps.quotas,
    limitPassed: (task, passed) => limitReached(task, passed),
    logger,
    servedBy,
  });
  endings = createEndings({
    ...context,
    asks,
    issuer,
    logger,
    quotas: deps.quotas,
    policyData,
    defaultTier: mounted.defaultTier,
  });
  /** In this process at once, so that later facts of the work do not count; in others through the log, like every cancel. */
  function limitReached(task: Pick<Task, 'id'>, passed: LimitPassed): void {
    const failure = limitFailure(passed);
    const stopping = runner.has(task.id)
      ? runner.stop(task.id, 'bridge', failure.message, failure)
      : tasks.cancelTask(task.id, 'bridge', failure.message, {}, failure);
    stopping.catch((cause) => logger.warn({ err: cause, task: task.id }, 'work past a limit had ended already'));
  }
  const timeLimits = createTimeLimits({
    log,
    policyData,
    quotas: deps.quotas,
    logger,
    now: () => clock.now(),
    reached: limitReached,
  });
  const shared = {
    ...context,
    alarms: createAlarms(endings, log),
    memories,
    sessionInputs,
    acts,
    asks,
    endings,
    gate,
    tools,
    backends,
    instance: instance.name,
    logger,
    timeLimits,
    canonical: deps.canonical,
    issuer,
    ...(issuer.sealer && { sealer: issuer.sealer }),
  };
  const runner = createRunner({ ...shared, isDead, offReason, graceMs: settings.graceMs });
  const replayer = createReplayer({ ...shared, signer: deps.signer });

  let learned = 0;
  function learn(secret: string): boolean {
    if (learned >= MOST_LEARNED) return false;
    learned += 1;
    deps.redactor.learn(secret);
    return true;
  }

  const taskDeps = {
    ...shared,
    servedBy,
    admit,
    runner,
    learn,
    quotas: deps.quotas,
    requireSound: deps.requireSound,
    defaultAgent,
    offReason,
    isDead,
    graceMs: settings.graceMs,
  };
  const tasks = taskHandlers(taskDeps);
  const handlers = createHandlers({
    ...taskDeps,
    tasks,
    replay: replayer.handlers,
    read,
    taints,
    vaults,
    verify: deps.verify,
    artifactLimit: settings.artifactLimit,
    resultLimits: settings.resultLimits,
  });
  const bridge = createBridge({
    ...shared,
    handlers,
    mounted,
    toolChanges,
    // The tool list does not depend on free disk space.
    visible: createVisibleTools({ tools, gate: pins.guardView(judge), ids, effectOf, access, policyData }),
    counts,
    wholeActs,
    policyData,
    vaults,
    artifactLimit: settings.artifactLimit,
    closing: closing.signal,
  });

  const sweep = createSweep(settings.sweepMs, logger);
  return {
    bridge,

    async start() {
      await instance.hold();
      const since = Date.parse(clock.now());
      const orphans = { ...shared, runner, isDead, recoversOrphans: settings.recoversOrphans, since };
      const look = async () => {
        await asks.expireDue();
        await wholeActs.sweep();
        return await recover(orphans);
      };
      // Later looks include quotas and personas that other processes have declared meanwhile.
      return await sweep.start(look, () => look().then(() => timeLimits.recheck()));
    },

    remount(parts) {
      mounted.remount(parts);
      toolChanges.changed();
    },
    reconsider() {
      mounted.reconsider();
      toolChanges.changed();
    },

    async idle() {
      await runner.idle();
      await replayer.idle();
    },

    async close() {
      closing.abort();
      sweep.close();
      timeLimits.close();
      toolChanges.close();
      await runner.close();
      await replayer.idle();
      await instance.close();
    },
  };
}

/** The number of secrets received with work that are redacted for the lifetime of this process. */
const MOST_LEARNED = 20_000;

/** Whether this event may change which limits apply to work, or their amounts. */
function changesLimits({ event, resource }: CoreEvent): boolean {
  return event.startsWith('vendor.tollbridge.resource_') && ['quota', 'persona', 'workspace'].includes(resource.object);
}
