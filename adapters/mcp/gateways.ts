/**
 * Two gateways in a row over MCP exchange claims about a call in `_meta`, under keys of our own. Where the configuration of the
 * near gateway says that the server is a gateway, it sends its task id, its call id and an event of its log; the far gateway answers
 * with its decision and the receipt that accounts for the call. Each records the other's claims as claims.
 */
import { OWN_META } from '../../mappings/mcp.ts';
import {
  type Action,
  type ActResult,
  type CallerOfCall,
  type CallerReference,
  hashOf,
  isObject,
  type JsonObject,
  own,
  type Task,
  type ToolResult,
} from '../../src/index.ts';
import { type FrameOutcome, metaOf } from './frames.ts';

/** Gateways in a row; more are a mistake, or a circle. */
const MOST_HOPS = 8;

/** The number of gateways that a request claims to have passed. */
function depthOf(params: JsonObject): number {
  const meta = isObject(params._meta) ? params._meta[OWN_META.caller] : undefined;
  const { depth } = isObject(meta) ? meta : {};
  return typeof depth === 'number' && Number.isSafeInteger(depth) && depth > 0 ? depth : 0;
}

/** Why this call goes no further, if it does not. */
export function circleIn(params: JsonObject | undefined): string | undefined {
  if (params?._meta === undefined || depthOf(params) <= MOST_HOPS) return undefined;
  return `this call has come through more than ${MOST_HOPS} gateways`;
}

/** Adds the reference to our call that the far gateway receives. */
export function announcing(params: JsonObject, { tool_call_id }: Partial<Action>, about: CallerReference): JsonObject {
  if (!tool_call_id) return params;
  const { task_id, issuer, key_id, event_id, event_hash } = about;
  const caller = {
    task_id,
    tool_call_id,
    depth: depthOf(params) + 1,
    ...(issuer && { issuer }),
    ...(key_id && { key_id }),
    ...(event_id && event_hash && { event_id, event_hash }),
  };
  return { ...params, _meta: { ...metaOf(params), [OWN_META.caller]: caller } };
}

/** The call of another gateway that this request claims to be. */
export function callerIn(params: JsonObject | undefined): CallerOfCall | undefined {
  const meta = isObject(params?._meta) ? params._meta[OWN_META.caller] : undefined;
  const said = isObject(meta) ? meta : {};
  const [task_id, tool_call_id] = [word(said.task_id), word(said.tool_call_id)];
  if (!task_id || !tool_call_id) return undefined;
  return { protocol: 'mcp', task_id, tool_call_id, ...wordsOf(said, ['issuer', 'key_id', 'event_id', 'event_hash']) };
}

/** Our account of another gateway's call: the task here, and its receipt once that is sealed. */
export interface OwnAccount {
  readonly taskId: string;
  readonly receipt: JsonObject | undefined;
}

/**
 * Adds our decision to an answer, unless the call was simply allowed; for another gateway also the task and receipt that account
 * for the call here. Errors are the server's: only those for another gateway get our members, where `data` has room for them.
 */
export function withWord(
  outcome: FrameOutcome,
  act: ActResult,
  args: JsonObject,
  account: OwnAccount | undefined,
): FrameOutcome {
  const { decision } = act;
  if (!account && ('error' in outcome || !decision)) return outcome;
  const { code, rule_id, reason, engine } = decision ?? {};
  const changed =
    act.kind === 'done' && decision?.arguments
      ? { ...hashed('input_hash', decision.arguments), ...hashed('requested_input_hash', args) }
      : {};
  const said = {
    verdict: act.kind === 'refused' ? 'denied' : 'approved',
    ...(decision && { by: engine, reason, ...(code && { code }), ...(rule_id && { rule_id }) }),
    ...changed,
    ...(account && { task_id: account.taskId, ...account.receipt }),
  };
  if ('result' in outcome) {
    return { result: { ...outcome.result, _meta: { ...metaOf(outcome.result), [OWN_META.act]: said } } };
  }
  const { data } = outcome.error;
  if (data !== undefined && !isObject(data)) return outcome;
  return { error: { ...outcome.error, data: { ...data, [OWN_META.act]: said } } };
}

/** Whether a task here is another gateway's call of an agent. */
export function isFromGateway({ metadata }: Pick<Task, 'metadata'>): boolean {
  const { tollbridge } = metadata;
  return isObject(tollbridge) && isObject(tollbridge.caller);
}

/** For the answer to another gateway whose call of an agent was a task of its own here. */
export function accountMeta({ taskId, receipt }: OwnAccount): JsonObject {
  return { [OWN_META.act]: { verdict: 'approved', task_id: taskId, ...receipt } };
}

/** The decision that a gateway behind the server claims to have made. Undefined when the server claims none, as most do. */
export function remoteIn(
  outcome: FrameOutcome,
  server: string,
  about: CallerReference | undefined,
): ToolResult['remote'] {
  const around = 'result' in outcome ? outcome.result._meta : outcome.error.data;
  const said = isObject(around) ? around[OWN_META.act] : undefined;
  if (!isObject(said) || !(said.verdict === 'approved' || said.verdict === 'denied')) return undefined;
  const task_id = word(said.task_id);
  // A server that received no reference to our call has none to account for.
  const link = about && task_id ? { link: { task_id, ...wordsOf(said, RECEIPT), ...linkTo(about) } } : {};
  return { remote: server, verdict: said.verdict, ...wordsOf(said, MEMBERS, 2_000), ...link };
}
const RECEIPT = ['receipt_id', 'receipt_hash', 'issuer', 'key_id'];
const MEMBERS = ['by', 'reason', 'code', 'rule_id', 'input_hash', 'requested_input_hash'];

/** The far gateway received the reference to our call and has not answered: only that reference can find its receipt. */
export function unansweredBy(server: string, about: CallerReference): NonNullable<ToolResult['remote']> {
  return { remote: server, verdict: 'unknown', link: linkTo(about) };
}

function linkTo({ event_id, event_hash }: CallerReference) {
  return { protocol: 'mcp', ...(event_id && event_hash && { announced: { event_id, event_hash } }) };
}

/** A value without a canonical form has no hash. */
function hashed(name: string, value: JsonObject): JsonObject {
  try {
    return { [name]: hashOf(value) };
  } catch {
    return {};
  }
}

function wordsOf(said: JsonObject, names: readonly string[], longest?: number): Record<string, string> {
  const words = names.flatMap((name) => {
    const value = word(own(said, name), longest);
    return value ? [[name, value] as const] : [];
  });
  return Object.fromEntries(words);
}

function word(value: unknown, longest = 200): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= longest ? value : undefined;
}
