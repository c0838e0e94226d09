/** Tasks as the log has them: which began with a task of ours, how they were told of then, and what their calls came to. */

import type {
  Actor,
  ActResult,
  Bridge,
  CoreEvent,
  Decision,
  Json,
  JsonObject,
  ToolEndedPayload,
  ToolRulingPayload,
} from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { type Caller, scopeOf } from './caller.ts';
import { isObject } from './frames.ts';
import { boundName } from './task-owners.ts';
import { keptIn, taskIn } from './task-words.ts';
import { toWireOutcome } from './translate.ts';

/** The house itself: whose a task is was asked before anything is read. */
const KEEPER: Actor = { id: 'system:mcp', kind: 'system', scopes: ['*'] };
const BOUND = 'vendor.tollbridge.bound';
const ENDS = ['tool.completed', 'tool.failed', 'tool.denied'];

export interface TaskLog {
  /** This caller's tasks that began with it, in the order they began, and whether each is still to be kept. */
  begun(ours: string, scope: string, now: number): Promise<readonly Begun[]>;
  /** A server's task as it was told of at first. */
  known(taskId: Json, scope: string): Promise<JsonObject | undefined>;
  /** The result of a call, as a task of this name was made of it. */
  ended(taskId: string, callId: string, caller: Pick<Caller, 'actor'>): Promise<JsonObject | undefined>;
}

export interface Begun {
  readonly taskId: string;
  readonly alive: boolean;
}

export function createTaskLog(
  server: string,
  bridge: Bridge,
  hasSchema: (tool: string, caller: Pick<Caller, 'actor'>) => Promise<boolean>,
): TaskLog {
  function read(ours: string, kinds: readonly string[]): AsyncIterable<CoreEvent> {
    return bridge.events(KEEPER, { stream: { of: 'task', id: ours }, kinds });
  }

  /** What does not fit in an event stands beside it. */
  async function whole(output: Json | undefined): Promise<Json> {
    if (!isObject(output) || output.type !== 'artifact_ref' || typeof output.artifact_id !== 'string') {
      return output ?? null;
    }
    return JSON.parse(Buffer.from(await bridge.bytes(KEEPER, output.artifact_id)).toString('utf8')) as Json;
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
    const { status, output, error, code } = payload as unknown as ToolEndedPayload;
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

/** Whether it is still to be kept, by what was said when it began. In the words of either design. */
export function isAlive({ createdAt, ttl, ttlMs }: JsonObject, now: number): boolean {
  const kept = ttlMs ?? ttl;
  return typeof kept !== 'number' || !(Date.parse(asText(createdAt)) + kept < now);
}

function stateIn({ output }: JsonObject): JsonObject | undefined {
  return isObject(output) ? taskIn(output) : undefined;
}

function refusalIn(payload: JsonObject): ActResult {
  const { reason = 'denied', by, code, rule_id } = payload as unknown as ToolRulingPayload;
  const why = { ...(code && { code }), ...(rule_id && { rule_id }) };
  return { kind: 'refused', reason, decision: { verdict: 'block', reason, engine: by, ...why } satisfies Decision };
}
