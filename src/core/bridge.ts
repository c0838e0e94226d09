/**
 * The bridge between doors and backends: doors submit commands and read everything from the log. A command is held against its
 * schema and the scopes of its actor before its handler sees it; what comes back is what that actor may see.
 */
import { COMMANDS, type Command, type CommandKind } from '../model/commands.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { Task } from '../model/resources.ts';
import { check } from '../model/validate.ts';
import { asText } from '../model/values/as-text.ts';
import type { Accepted, Bridge, Logger, Row } from '../ports/index.ts';
import { holds, requireCommandScope, requireReadScope, requireScope } from './access.ts';
import type { ReadPolicyData } from './actions/policy-data.ts';
import type { WholeActs } from './approvals/whole-acts.ts';
import { createDeliveries, type DeliveryDeps } from './commands/deliveries.ts';
import type { Memories } from './commands/memories.ts';
import type { SessionInputs } from './commands/session-inputs.ts';
import { createHome } from './commands/session-opening.ts';
import { createUploads } from './commands/uploads.ts';
import { createViews } from './commands/views.ts';
import type { Context, Handlers } from './context.ts';
import { shownAccepted } from './events/visibility.ts';
import type { Mounted } from './mounted.ts';
import type { CallCounts } from './tools/call-counts.ts';
import type { Tools } from './tools/catalog.ts';
import type { ToolChanges } from './tools/changes.ts';

export interface BridgeDeps extends Context {
  readonly handlers: Handlers;
  readonly mounted: Pick<Mounted, 'tools' | 'describe' | 'addresses'>;
  readonly tools: Tools;
  readonly toolChanges: Pick<ToolChanges, 'watch'>;
  readonly visible: Bridge['visible'];
  readonly counts: Pick<CallCounts, 'all'>;
  readonly memories: Pick<Memories, 'recall'>;
  readonly sessionInputs: Pick<SessionInputs, 'apply'>;
  readonly wholeActs: Pick<WholeActs, 'show'>;
  readonly policyData: ReadPolicyData;
  readonly vaults: DeliveryDeps['vaults'];
  readonly artifactLimit: number;
  readonly logger: Logger;
  /** Fires when the gateway accepts no more work. */
  readonly closing: AbortSignal;
}

export function createBridge(deps: BridgeDeps): Bridge {
  const { access, handlers, mounted, tools, memories, policyData, logger } = deps;

  async function submit<K extends CommandKind>(command: Extract<Command, { kind: K }>): Promise<Accepted<K>> {
    try {
      if (deps.closing.aborted) throw new Fault('unavailable', 'the gateway is shutting down');
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

  const views = createViews(deps);
  return {
    submit,
    ...views,
    home: createHome({ ...views, submit }),
    recall: memories.recall,
    sessionInputs: deps.sessionInputs.apply,
    pendingAct: (actor, askId) => deps.wholeActs.show(actor, askId),
    quotasOf: async (actor, taskId) => (await policyData(await access.see<Task & Row>(actor, 'task', taskId))).quotas,
    ...createUploads(deps),
    ...createDeliveries({ ...deps, submit }),
    async tools(actor) {
      requireReadScope(actor, 'skill');
      return await tools.list(actor);
    },
    async tool(actor, name, server) {
      requireReadScope(actor, 'skill');
      return await tools.find(actor, name, server);
    },
    visible: deps.visible,
    async servers(actor) {
      requireReadScope(actor, 'skill');
      return mounted.tools().flatMap(({ name, pass }) => (pass ? [name] : []));
    },
    async serverStates(actor) {
      // A reader of the metrics learns which servers answer, and nothing of their tools.
      if (!holds(actor, 'metrics:read')) requireReadScope(actor, 'skill');
      return tools.states(actor);
    },
    async agentAddresses(actor) {
      // Names of machines, which no peer is to learn.
      requireScope(actor, 'metrics:read');
      return await mounted.addresses();
    },
    toolCalls: deps.counts.all,
    watch: (onChange, servers) => deps.toolChanges.watch(onChange, servers),
    async agents(actor) {
      requireReadScope(actor, 'skill');
      return mounted.describe(actor);
    },
  };
}

/** Deeper than any real body, and shallow enough for every recursive function. */
const DEEPEST_BODY = 500;

function deeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => deeperThan(item, levels - 1));
  for (const name in value) if (deeperThan((value as Record<string, unknown>)[name], levels - 1)) return true;
  return false;
}
