/**
 * Joins the parts of core into the bridge between doors and backends: doors submit commands and read everything from the log. This
 * file only wires; each part is one idea with its dependencies handed in.
 */
import type { Actor } from '../model/actions.ts';
import { COMMANDS, type Command, type CommandKind } from '../model/commands.ts';
import type { CoreEvent } from '../model/events.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { Task } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';
import { check } from '../model/validate.ts';
import { asText } from '../model/values/as-text.ts';
import type { AutonomyTier } from '../model/words.ts';
import type {
  Accepted,
  AgentBackend,
  AgentTerms,
  Bridge,
  Committed,
  LimitPassed,
  Row,
  ToolBackend,
} from '../ports/index.ts';
import { createAccess, holds, mayCall, requireCommandScope, requireReadScope, requireScope } from './access.ts';
import { createAlarms } from './actions/alarms.ts';
import { createArgumentsDigest } from './actions/arguments-digest.ts';
import { actionHandlers, createActs } from './actions/execute.ts';
import { requireRoom } from './actions/free-space.ts';
import { createGate, type Gate } from './actions/gate.ts';
import { createPolicyData, type ReadPolicyData } from './actions/policy-data.ts';
import { createTaints } from './actions/taints.ts';
import { createTimeLimits, limitFailure } from './actions/time-limits.ts';
import { createAsks } from './approvals/asks.ts';
import { createChangedActs } from './approvals/changed-acts.ts';
import { createWholeActs, inMemory } from './approvals/whole-acts.ts';
import { artifactHandlers } from './commands/artifact-changes.ts';
import { createAskedSession } from './commands/asked-session.ts';
import { branchHandlers } from './commands/branches.ts';
import { declaredHandlers } from './commands/declared.ts';
import { createDeliveries } from './commands/deliveries.ts';
import { createMemories } from './commands/memories.ts';
import { recordHandlers } from './commands/records.ts';
import { WITHOUT_TENANT } from './commands/secret-use.ts';
import { createSessionInputs } from './commands/session-inputs.ts';
import { createAdmit } from './commands/session-opening.ts';
import { sessionHandlers } from './commands/sessions.ts';
import { createUploads } from './commands/uploads.ts';
import { createViews } from './commands/views.ts';
import type { Context, Handlers } from './context.ts';
import { createLog, type Log } from './events/log.ts';
import { endsTask } from './events/projector.ts';
import { shownAccepted } from './events/visibility.ts';
import { createReplayer } from './replay/replay.ts';
import { type CoreDeps, DEFAULTS, type Settings } from './settings.ts';
import { createEndings, type Endings } from './tasks/end-task.ts';
import { type Recovered, recover } from './tasks/recovery.ts';
import { createRunner } from './tasks/runner.ts';
import { createSubmit } from './tasks/submit.ts';
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

export interface Remounted {
  readonly backends: readonly AgentBackend[];
  readonly tools: readonly ToolBackend[];
  readonly terms?: ReadonlyMap<string, AgentTerms>;
  /** For work without a persona; unchanged when absent. */
  readonly defaultTier?: AutonomyTier;
}

export function createCore(deps: CoreDeps): Core {
  const { store, clock, ids, issuer, logger } = deps;
  const settings: Settings = { ...DEFAULTS, ...deps.settings };
  const backends = new Map(deps.backends.map((backend) => [backend.name, backend]));
  /** State that changes while work runs. Only `remount` and `reconsider` write it; all other code reads it each time. */
  const mounted = {
    tools: deps.tools,
    terms: deps.terms ?? NO_TERMS,
    defaultTier: settings.defaultTier,
    revision: 0,
  };
  /** The agent for work that names none: the default one, or the first one that this actor may call. */
  const defaultAgent = (actor: Actor) => {
    const chosen = settings.defaultAgent ?? backends.keys().next().value;
    if (chosen === undefined || mayCall(actor, chosen)) return chosen;
    return [...backends.keys()].find((name) => mayCall(actor, name));
  };
  const offReason = (agent: string) => mounted.terms.get(agent)?.off ?? deps.switchedOff?.(agent);
  const instance = ids.next('instance');
  const closing = new AbortController();
  let held: { close(): Promise<void> } | undefined;
  /** The name by which other processes can check that this one lives; undefined while it does not hold its lease. */
  const servedBy = () => (held ? instance : undefined);
  let sweep: NodeJS.Timeout | undefined;

  const toolChanges = createToolChanges(
    () => mounted.tools,
    store,
    logger,
    (server) => tools.again(server),
  );
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
      if (event.event === 'session.closed') release(event.resource.id);
      else if (endsTask(event)) timeLimits.end(event.task_id ?? '');
      else if (changesLimits(event)) timeLimits.recheck();
    }
    wholeActs.closed(committed.events);
    return committed;
  }
  function release(sessionId: string): void {
    sessionInputs.release(sessionId);
    for (const backend of backends.values()) {
      backend
        .release?.(sessionId)
        .catch((cause) => logger.warn({ err: cause, agent: backend.name }, 'an agent could not let go of a session'));
    }
  }
  const vaults = deps.vaultAccess ?? WITHOUT_TENANT;
  const access = createAccess(store, vaults);
  const hash = (value: Json) => issuer.hash(value);
  const context: Context = { store, log, access, clock, ids, hash, logRoot: (events) => issuer.logRoot(events) };
  const tools = createTools(() => mounted.tools, hash, logger);
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
    limitOf: (server, tool) => mounted.tools.find(({ name }) => name === server)?.limit?.(tool),
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
  const agentQuota = (agent: string) => mounted.terms.get(agent)?.quota_id;
  const readData = createPolicyData(store, () => mounted.defaultTier, agentQuota);
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
    revision: () => mounted.revision,
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
    defaultTier: () => mounted.defaultTier,
  });
  /** In this process at once, so that later facts of the work do not count; in others through the log, like every cancel. */
  function limitReached(task: Pick<Task, 'id'>, passed: LimitPassed): void {
    const failure = limitFailure(passed);
    const stopping = runner.has(task.id)
      ? runner.stop(task.id, 'bridge', failure.message, failure)
      : cancelTask(task.id, 'bridge', failure.message, {}, failure);
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
    instance,
    logger,
    timeLimits,
    canonical: deps.canonical,
    issuer,
    ...(issuer.sealer && { sealer: issuer.sealer }),
  };
  const runner = createRunner({ ...shared, isDead, offReason, graceMs: settings.graceMs });
  const replayer = createReplayer({ ...shared, signer: deps.signer });

  /** A process holds the lease on its own name as long as it lives; a process that can take the lease knows that the other is dead. */
  async function isDead(other: string): Promise<boolean> {
    if (other === instance) return false;
    const lease = await store.lease(`instance:${other}`);
    await lease?.close();
    return lease !== undefined;
  }

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
  const { cancelTask, ...tasks } = taskHandlers(taskDeps);
  const actionCommands = actionHandlers({ ...context, acts, tools });
  const sessions = sessionHandlers({ ...context, cancelTask, admit, vaults, backends, servedBy });
  const handlers: Handlers = {
    ...declaredHandlers({ ...context, vaults }),
    ...sessions,
    'session.create': createAskedSession({
      ...context,
      backends,
      servedBy,
      create: sessions['session.create'],
      close: sessions['session.close'],
      submit: createSubmit({ ...taskDeps, admit: async () => {} }),
      propose: actionCommands['action.propose'],
      report: tasks['task.report'],
    }),
    ...branchHandlers(context),
    ...artifactHandlers(context),
    ...tasks,
    ...actionCommands,
    ...recordHandlers({
      ...shared,
      read: deps.read,
      taints,
      verify: deps.verify,
      artifactLimit: settings.artifactLimit,
      resultLimits: settings.resultLimits,
    }),
    ...replayer.handlers,
  };

  async function submit<K extends CommandKind>(command: Extract<Command, { kind: K }>): Promise<Accepted<K>> {
    try {
      if (closing.signal.aborted) throw new Fault('unavailable', 'the gateway is shutting down');
      const shape = Object.hasOwn(COMMANDS, command.kind) ? COMMANDS[command.kind as CommandKind] : undefined;
      if (!shape) throw new Fault('invalid_request', `no command ${asText(command.kind)}`, { param: '/kind' });
      if (deeperThan(command.body, DEEPEST_BODY)) {
        throw new Fault('invalid_request', `${command.kind}: nested more than ${DEEPEST_BODY} deep`);
      }
      check(shape, command.body, command.kind);
      const { object } = command.body as { object?: string };
      requireCommandScope(command.actor, command.kind, object);
      // The handler of a kind takes commands of that kind, and was found by the kind of the command it is given.
      const handle = handlers[command.kind] as (command: Command) => Promise<Accepted<K>>;
      return shownAccepted(await handle(command), command.actor);
    } catch (thrown) {
      const fault = asFault(thrown);
      if (fault.kind === 'internal')
        logger.error({ err: fault.cause ?? fault, command: command.kind }, 'a command failed');
      throw fault;
    }
  }

  return {
    bridge: {
      submit,
      ...createViews({ store, access }),
      recall: memories.recall,
      sessionInputs: sessionInputs.apply,
      pendingAct: (actor, askId) => wholeActs.show(actor, askId),
      quotasOf: async (actor, taskId) => (await policyData(await access.see<Task & Row>(actor, 'task', taskId))).quotas,
      ...createUploads({ ...context, artifactLimit: settings.artifactLimit }),
      ...createDeliveries({ ...context, submit, vaults }),
      async tools(actor) {
        requireReadScope(actor, 'skill');
        return await tools.list(actor);
      },
      async tool(actor, name, server) {
        requireReadScope(actor, 'skill');
        return await tools.find(actor, name, server);
      },
      // The tool list does not depend on free disk space.
      visible: createVisibleTools({ tools, gate: pins.guardView(judge), ids, effectOf, access, policyData }),
      async servers(actor) {
        requireReadScope(actor, 'skill');
        return mounted.tools.flatMap(({ name, pass }) => (pass ? [name] : []));
      },
      async serverStates(actor) {
        // Who reads the metrics learns which servers answer, and nothing of their tools.
        if (!holds(actor, 'metrics:read')) requireReadScope(actor, 'skill');
        return tools.states(actor);
      },
      async agentAddresses(actor) {
        // Names of machines, which no peer is to learn.
        requireScope(actor, 'metrics:read');
        const found = [...backends.values()].map(async ({ name: agent, addresses }) =>
          ((await addresses?.(false)) ?? []).map((each) => ({ agent, ...each })),
        );
        return (await Promise.all(found)).flat();
      },
      toolCalls: counts.all,
      watch: (onChange, servers) => toolChanges.watch(onChange, servers),
      async agents(actor) {
        requireReadScope(actor, 'skill');
        const standard = defaultAgent(actor);
        const callable = [...backends.values()].filter(({ name }) => mayCall(actor, name));
        return callable.map((backend) => {
          const { name, abilities, about = NO_DESCRIPTION } = backend;
          const more = mounted.terms.get(name)?.about;
          return {
            name,
            default: name === standard,
            abilities,
            about: more ? { ...about, ...more } : about,
            ...(backend.describe && { describe: async () => ({ ...(await backend.describe?.()), ...more }) }),
          };
        });
      },
    },

    async start() {
      held = await store.lease(`instance:${instance}`);
      const since = Date.parse(context.clock.now());
      const orphans = { ...shared, runner, isDead, recoversOrphans: settings.recoversOrphans, since };
      await asks.expireDue();
      await wholeActs.sweep();
      const recovered = await recover(orphans);
      const again = async () => {
        try {
          await asks.expireDue();
          await wholeActs.sweep();
          await recover(orphans);
          // Includes quotas and personas that other processes have declared meanwhile.
          timeLimits.recheck();
        } catch (cause) {
          logger.error({ err: cause }, 'looking for orphaned tasks failed');
        } finally {
          if (!closing.signal.aborted) sweep = setTimeout(again, settings.sweepMs).unref();
        }
      };
      sweep = setTimeout(again, settings.sweepMs).unref();
      return recovered;
    },

    remount(parts) {
      backends.clear();
      for (const backend of parts.backends) backends.set(backend.name, backend);
      mounted.tools = parts.tools;
      mounted.terms = parts.terms ?? mounted.terms;
      mounted.defaultTier = parts.defaultTier ?? mounted.defaultTier;
      mounted.revision += 1;
      toolChanges.changed();
    },
    reconsider() {
      mounted.revision += 1;
      toolChanges.changed();
    },

    async idle() {
      await runner.idle();
      await replayer.idle();
    },

    async close() {
      closing.abort();
      clearTimeout(sweep);
      timeLimits.close();
      toolChanges.close();
      await runner.close();
      await replayer.idle();
      await held?.close();
    },
  };
}

const NO_TERMS: ReadonlyMap<string, AgentTerms> = new Map();

/** One shared object: doors compare an agent's self-description by identity. */
const NO_DESCRIPTION = {};

/** Deeper than any real body, and shallow enough for every recursive function. */
const DEEPEST_BODY = 500;

function deeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => deeperThan(item, levels - 1));
  for (const name in value) if (deeperThan((value as Record<string, unknown>)[name], levels - 1)) return true;
  return false;
}

/** The number of secrets received with work that are redacted for the lifetime of this process. */
const MOST_LEARNED = 20_000;

/** Whether this event may change which limits apply to work, or their amounts. */
function changesLimits({ event, resource }: CoreEvent): boolean {
  return event.startsWith('vendor.tollbridge.resource_') && ['quota', 'persona', 'workspace'].includes(resource.object);
}
