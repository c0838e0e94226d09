/**
 * The corridor between doors and backends: commands come in at one end, and everything anyone sees is read from the
 * log at the other. This file only joins the parts; each is one idea with its dependencies handed in.
 */
import { asText } from '../model/as-text.ts';
import { COMMANDS, type Command, type CommandKind } from '../model/commands.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { check } from '../model/validate.ts';
import type { AutonomyTier } from '../model/words.ts';
import type {
  Accepted,
  ActReader,
  AgentBackend,
  Bridge,
  Clock,
  Committed,
  Ids,
  Logger,
  PendingActs,
  PolicyEngine,
  QuotaRules,
  ReadFileText,
  ReceiptIssuer,
  Signer,
  Store,
  ToolBackend,
} from '../ports.ts';
import { createAccess, requireCommandScope, requireReadScope } from './access.ts';
import { createActs } from './acts.ts';
import { createAlarms } from './alarms.ts';
import { createAsks } from './asks.ts';
import { branchHandlers } from './branches.ts';
import type { Context, Handlers } from './context.ts';
import { declaredHandlers } from './declared.ts';
import { createDeliveries } from './deliveries.ts';
import { createEndings, type Endings } from './endings.ts';
import { createGate, decidedEvent, type Gate } from './gate.ts';
import { type CleanLarge, createLog, type Log, type Redactor } from './log.ts';
import { isOffered, offeredTools } from './offered.ts';
import { createOffers } from './offers.ts';
import type { Admit } from './opening.ts';
import { createPins } from './pins.ts';
import { createPolicyData, type ReadPolicyData } from './policy-data.ts';
import { type RecordDeps, recordHandlers } from './records.ts';
import { type Recovered, recover } from './recovery.ts';
import { createReplayer } from './replay.ts';
import { RESULT_LIMITS, type ResultLimits } from './result-size.ts';
import { requireRoom } from './room.ts';
import { createRunner } from './runner.ts';
import { sessionHandlers } from './sessions.ts';
import { createTaints } from './taints.ts';
import { taskHandlers } from './tasks.ts';
import { createTools } from './tools.ts';
import { createUploads } from './uploads.ts';
import { createViews } from './views.ts';
import { createWholeActs, inMemory } from './whole-acts.ts';

export interface CoreDeps {
  readonly store: Store;
  readonly policy: PolicyEngine;
  readonly quotas: QuotaRules;
  readonly issuer: ReceiptIssuer;
  readonly verify: RecordDeps['verify'];
  readonly signer: Signer;
  /** RFC 8785 text of a value. */
  readonly canonical: (value: Json) => string;
  readonly redactor: Redactor;
  readonly backends: readonly AgentBackend[];
  readonly tools: readonly ToolBackend[];
  /** Tells what an act touches, whatever its agent calls it. */
  readonly read: ActReader;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Where acts are kept whole while people are asked about them; in memory when there is no such place. */
  readonly pendingActs?: PendingActs;
  /** Files as they are, to show what a write would change. */
  readonly readFile?: ReadFileText;
  readonly cleanLarge?: CleanLarge;
  readonly settings?: Partial<Settings>;
  /** Rules or declarations that changed outside and do not hold here yet: resolves when they do. Asked before each decision. */
  readonly upToDate?: () => Promise<void> | undefined;
}

export interface Settings {
  readonly defaultAgent: string | undefined;
  /** Without a persona: rules alone, and what no rule covers is asked. */
  readonly defaultTier: AutonomyTier;
  readonly policyTimeoutMs: number;
  readonly askExpiresMs: number;
  readonly graceMs: number;
  readonly deferTries: number;
  readonly deferCapMs: number;
  readonly inlineLimit: number;
  readonly artifactLimit: number;
  readonly resultLimits: ResultLimits;
  /**
   * Looks after work of agents it does not have, and ends it when its process has died. Not for one that only visits: the gateway it
   * belongs to comes back for it.
   */
  readonly keeper: boolean;
  /** How often to look for tasks whose process has died. */
  readonly sweepMs: number;
}
const DEFAULTS: Settings = {
  defaultAgent: undefined,
  defaultTier: 'act_auto',
  policyTimeoutMs: 2000,
  askExpiresMs: 60 * 60 * 1000,
  graceMs: 5000,
  deferTries: 5,
  deferCapMs: 60_000,
  inlineLimit: 64 * 1024,
  artifactLimit: 64 * 1024 * 1024,
  resultLimits: RESULT_LIMITS,
  keeper: true,
  sweepMs: 10_000,
};

export interface Core {
  readonly bridge: Bridge;
  /** Takes up what an earlier process left behind. Doors open after this. */
  start(): Promise<Recovered>;
  /** From now on these are the agents and tools. Work that has begun goes on with the agent that began it. */
  remount(parts: Remounted): void;
  /** Other rules hold: whoever watches what is offered looks again. */
  reconsider(): void;
  /** Resolves when no task of this process is running. */
  idle(): Promise<void>;
  /** Stops taking work, lets what runs end or be resumed later, and leaves the store to its owner. */
  close(): Promise<void>;
}

export interface Remounted {
  readonly backends: readonly AgentBackend[];
  readonly tools: readonly ToolBackend[];
  /** For work without a persona; as it was when absent. */
  readonly defaultTier?: AutonomyTier;
}

export function createCore(deps: CoreDeps): Core {
  const { store, clock, ids, issuer, logger } = deps;
  const settings: Settings = { ...DEFAULTS, ...deps.settings };
  const backends = new Map(deps.backends.map((backend) => [backend.name, backend]));
  /** What may change while work goes on. Written by `remount` and `reconsider` only; everyone else reads it each time. */
  const mounted = { tools: deps.tools, defaultTier: settings.defaultTier, revision: 0 };
  const defaultAgent = () => settings.defaultAgent ?? backends.keys().next().value;
  const instance = ids.next('instance');
  const closing = new AbortController();
  let held: { close(): Promise<void> } | undefined;
  let sweep: NodeJS.Timeout | undefined;

  const offers = createOffers(() => mounted.tools, store, logger);
  let endings: Endings | undefined;
  const plain = createLog({
    store,
    redactor: deps.redactor,
    ids,
    inlineLimit: settings.inlineLimit,
    ...(deps.cleanLarge && { cleanLarge: deps.cleanLarge }),
  });
  const log: Log = { ...plain, commit: (unit) => plain.commit(unit).then(observed) };
  function observed(committed: Committed): Committed {
    if (committed.repeated) return committed;
    endings?.observe(committed.events);
    for (const { event, resource } of committed.events) if (event === 'session.closed') release(resource.id);
    wholeActs.closed(committed.events);
    return committed;
  }
  function release(sessionId: string): void {
    for (const backend of backends.values()) {
      backend
        .release?.(sessionId)
        .catch((cause) => logger.warn({ err: cause, agent: backend.name }, 'an agent could not let go of a session'));
    }
  }
  const access = createAccess(store);
  const hash = (value: Json) => issuer.hash(value);
  const context: Context = { store, log, access, clock, ids, hash };
  const tools = createTools(() => mounted.tools, hash);
  const pins = createPins({ ...context, tools });
  const digest = (args: JsonObject) => deps.signer.mac(deps.canonical(args));
  const judge = pins.guard(
    createGate({ policy: deps.policy, timeoutMs: settings.policyTimeoutMs, log: logger, digest }),
  );
  const decide = requireRoom(judge, store, settings.resultLimits);
  const gate: Gate = (action, withinMs) => {
    const pending = deps.upToDate?.();
    return pending ? pending.then(() => decide(action, withinMs)) : decide(action, withinMs);
  };
  const wholeActs = createWholeActs({
    ...context,
    logger,
    pending: deps.pendingActs ?? inMemory(),
    readFile: deps.readFile,
  });
  const asks = createAsks({
    ...context,
    wholeActs,
    signer: deps.signer,
    canonical: deps.canonical,
    expiresMs: settings.askExpiresMs,
  });
  const taints = createTaints({ store, log });
  const readData = createPolicyData(store, () => mounted.defaultTier);
  const policyData: ReadPolicyData = (about) => {
    const pending = deps.upToDate?.();
    return pending ? pending.then(() => readData(about)) : readData(about);
  };
  const acts = createActs({
    ...context,
    ...settings,
    policyData,
    revision: () => mounted.revision,
    gate,
    asks,
    wholeActs,
    tools,
    taints,
    digest,
    read: deps.read,
    quotas: deps.quotas,
    logger,
    servedBy: () => (held ? instance : undefined),
  });
  endings = createEndings({
    ...context,
    asks,
    issuer,
    logger,
    quotas: deps.quotas,
    defaultTier: () => mounted.defaultTier,
  });
  const shared = {
    ...context,
    alarms: createAlarms(endings, log),
    acts,
    asks,
    endings,
    gate,
    tools,
    backends,
    instance,
    logger,
    canonical: deps.canonical,
  };
  const runner = createRunner({ ...shared, isDead, graceMs: settings.graceMs });
  const replayer = createReplayer({ ...shared, signer: deps.signer });

  /** A process holds its own name for as long as it lives; whoever can take it knows that it does not. */
  async function isDead(other: string): Promise<boolean> {
    if (other === instance) return false;
    const lease = await store.lease(`instance:${other}`);
    await lease?.close();
    return lease !== undefined;
  }

  const { cancelTask, ...tasks } = taskHandlers({
    ...shared,
    admit,
    runner,
    quotas: deps.quotas,
    get defaultAgent() {
      return defaultAgent();
    },
    isDead,
    graceMs: settings.graceMs,
  });
  const handlers: Handlers = {
    ...declaredHandlers(context),
    ...sessionHandlers({ ...context, cancelTask, admit }),
    ...branchHandlers(context),
    ...tasks,
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

  /** Opening a session is an act like any other: policy may forbid it, and only a yes opens it. */
  async function admit(...[actor, workspaceId, about]: Parameters<Admit>): Promise<void> {
    const action = {
      id: ids.next('action'),
      kind: 'session.open' as const,
      actor,
      workspace_id: workspaceId,
      arguments: about,
      effect: 'none' as const,
      evidence: 'held' as const,
    };
    const decision = await gate(action);
    if (decision.verdict === 'allow') return;
    const place = { resource: { object: 'workspace', id: workspaceId }, session_id: null };
    await log.commit({ decide: () => ({ events: [{ ...decidedEvent(action, decision), ...place }] }) });
    throw new Fault('policy_violation', decision.reason, { details: { rule_id: decision.rule_id ?? null } });
  }

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
      const handle = handlers[command.kind] as unknown as (c: typeof command) => Promise<Accepted<K>>;
      return await handle(command);
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
      pendingAct: (actor, askId) => wholeActs.show(actor, askId),
      ...createUploads({ ...context, artifactLimit: settings.artifactLimit }),
      ...createDeliveries({ ...context, submit }),
      async tools(actor) {
        requireReadScope(actor, 'skill');
        return await tools.list();
      },
      async tool(actor, name, server) {
        requireReadScope(actor, 'skill');
        return (await tools.find(name, server))?.skill;
      },
      async offered(actor, workspaceId, one) {
        requireReadScope(actor, 'skill');
        if (!(await access.workspaceVisible(actor, workspaceId))) return [];
        const data = await acts.policyData({ workspace_id: workspaceId, persona_id: null, quota_id: null });
        const about = { actor, workspace_id: workspaceId, ...data };
        // What is offered does not come and go with the room there is.
        const deps = { tools, gate: judge, ids };
        if (!one) return await offeredTools(deps, about);
        return (await isOffered(deps, about, one.name, one.source ?? undefined)) ? [one] : [];
      },
      async servers(actor) {
        requireReadScope(actor, 'skill');
        return mounted.tools.flatMap(({ name, pass }) => (pass ? [name] : []));
      },
      watch: (heard, servers) => offers.watch(heard, servers),
      async agents(actor) {
        requireReadScope(actor, 'skill');
        return [...backends.values()].map(({ name, abilities, about = NOTHING_SAID }) => ({
          name,
          default: name === defaultAgent(),
          abilities,
          about,
        }));
      },
    },

    async start() {
      held = await store.lease(`instance:${instance}`);
      const orphans = { ...shared, runner, isDead, keeper: settings.keeper };
      await asks.expireDue();
      await wholeActs.sweep();
      const recovered = await recover(orphans);
      const again = async () => {
        try {
          await asks.expireDue();
          await wholeActs.sweep();
          await recover(orphans);
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
      mounted.defaultTier = parts.defaultTier ?? mounted.defaultTier;
      mounted.revision += 1;
      offers.changed();
    },
    reconsider() {
      mounted.revision += 1;
      offers.changed();
    },

    async idle() {
      await runner.idle();
      await replayer.idle();
    },

    async close() {
      closing.abort();
      clearTimeout(sweep);
      offers.close();
      await runner.close();
      await replayer.idle();
      await held?.close();
    },
  };
}

/** The same each time: doors look whether an agent still says of itself what it said. */
const NOTHING_SAID = {};

/** Deeper than anyone writes by hand or by program, and shallow enough for everything that walks it. */
const DEEPEST_BODY = 500;

function deeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => deeperThan(item, levels - 1));
  for (const name in value) if (deeperThan((value as Record<string, unknown>)[name], levels - 1)) return true;
  return false;
}
