/** Reads tasks from the log: those that began within a task of ours, how they were rendered then, and the outcome of their calls. */

import type {
  Actor,
  ActResult,
  Bridge,
  CoreEvent,
  Decision,
  Json,
  JsonObject,
  ToolDecisionPayload,
  ToolEndedPayload,
} from '../../../src/index.ts';
import { asText, isObject } from '../../../src/index.ts';
import { type Caller, scopeOf } from '../server/caller.ts';
import { toWireOutcome } from '../translate.ts';
import { boundName } from './owners.ts';
import { keptIn, taskIn } from './words.ts';

/** The system actor: the owner of a task is checked before anything is read. */
const SYSTEM_ACTOR: Actor = { id: 'system:mcp', kind: 'system', scopes: ['*'] };
const BOUND = 'vendor.tollbridge.bound';
const ENDS = ['tool.completed', 'tool.failed', 'tool.denied'];

export interface TaskLog {
  /** This caller's tasks that began within the task `ours`, in the order they began, and whether each is within its lifetime. */
  begun(ours: string, scope: string, now: number): Promise<readonly Begun[]>;
  /** A server's task as it was first rendered. */
  known(taskId: Json, scope: string): Promise<JsonObject | undefined>;
  /** The result of a call that became the task with this id. */
  ended(taskId: string, callId: string, caller: Pick<Caller, 'actor'>): Promise<JsonObject | undefined>;
}

interface Begun {
  readonly taskId: string;
  readonly alive: boolean;
}

export function createTaskLog(
  server: string,
  bridge: Bridge,
  hasSchema: (tool: string, caller: Pick<Caller, 'actor'>) => Promise<boolean>,
): TaskLog {
  function read(ours: string, kinds: readonly string[]): AsyncIterable<CoreEvent> {
    return bridge.events(SYSTEM_ACTOR, { stream: { of: 'task', id: ours }, kinds });
  }

  /** Outputs that are too large for an event are stored as an artifact. */
  async function whole(output: Json | undefined): Promise<Json> {
    if (!isObject(output) || output.type !== 'artifact_ref' || typeof output.artifact_id !== 'string') {
      return output ?? null;
    }
    return JSON.parse(Buffer.from(await bridge.bytes(SYSTEM_ACTOR, output.artifact_id)).toString('utf8')) as Json;
  }

  async function resultIn(
    { event, payload }: CoreEvent,
    caller: Pick<Caller, 'actor'>,
  ): Promise<JsonObject | undefined> {
    const act = event === 'tool.denied' ? refusalIn(payload) : await endIn(payload);
    const outcome = toWireOutcome(act, act.kind === 'refused' && !(await hasSchema(asText(payload.name), caller)));
    return 'result' in outcome ? outcome.result : undefined;
  }

  async function endIn(payload: JsonObject): Promise<ActResult> {
    const { status, output, error, code } = payload as ToolEndedPayload;
    const result = { status, output: await whole(output), ...(error && { error }), ...(code && { code }) };
    return { kind: 'done', result };
  }

  return {
    async begun(ours, scope, now) {
      const prefix = boundName(server, '');
      const ids: string[] = [];
      const over = new Set<string>();
      for await (const { event, payload } of read(ours, [BOUND, 'tool.completed'])) {
        const state = event === BOUND ? undefined : stateIn(payload);
        if (state && !isAlive(state, now)) over.add(asText(state.taskId));
        const { wire_id } = payload;
        if (event !== BOUND || payload.scope !== scope || typeof wire_id !== 'string') continue;
        if (wire_id.startsWith(prefix)) ids.push(wire_id.slice(prefix.length));
      }
      return ids.map((taskId) => {
        const kept = keptIn(taskId);
        return { taskId, alive: kept ? now <= kept.created + kept.ttl : !over.has(taskId) };
      });
    },
    async known(taskId, scope) {
      const ours = typeof taskId === 'string' && (await bridge.bound('mcp', scope, boundName(server, taskId)));
      if (!ours) return undefined;
      for await (const { payload } of read(ours.id, ['tool.completed'])) {
        const state = stateIn(payload);
        if (state?.taskId === taskId) return state;
      }
      return undefined;
    },
    async ended(taskId, callId, caller) {
      const ours = await bridge.bound('mcp', scopeOf(caller.actor), boundName(server, taskId));
      if (!ours) return undefined;
      for await (const event of read(ours.id, ENDS)) {
        if (event.payload.tool_call_id === callId) return await resultIn(event, caller);
      }
      return undefined;
    },
  };
}

/** Whether it is within the lifetime that was declared when it began. Reads the members of either design. */
export function isAlive({ createdAt, ttl, ttlMs }: JsonObject, now: number): boolean {
  const kept = ttlMs ?? ttl;
  return typeof kept !== 'number' || !(Date.parse(asText(createdAt)) + kept < now);
}

function stateIn({ output }: JsonObject): JsonObject | undefined {
  return isObject(output) ? taskIn(output) : undefined;
}

function refusalIn(payload: JsonObject): ActResult {
  const { reason = 'denied', by, code, rule_id } = payload as ToolDecisionPayload;
  const why = { ...(code && { code }), ...(rule_id && { rule_id }) };
  return { kind: 'refused', reason, decision: { verdict: 'block', reason, engine: by, ...why } satisfies Decision };
}
