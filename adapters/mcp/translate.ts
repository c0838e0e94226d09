/** Tools and results, from the wire's shape to ours and back. Pure. A call to a server is built only from the decided action. */

import { effectOf, HINTS, methodRow } from '../../mappings/mcp.ts';
import type {
  Action,
  ActResult,
  CallerReference,
  CoreEvent,
  Effect,
  Json,
  JsonObject,
  Skill,
  ToolResult,
} from '../../src/index.ts';
import { asText, isObject } from '../../src/index.ts';
import type { UpstreamSettings } from './config.ts';
import type { FrameOutcome } from './frames.ts';
import { remoteIn } from './gateways.ts';
import type { McpRequestContext } from './request-context.ts';

export interface ToolOutput {
  readonly name: string;
  readonly tool: JsonObject;
}

/** ASCII only: letters of other alphabets could be mistaken for these by a person. */
const PLAIN_NAME = /^[A-Za-z0-9_./-]{1,128}$/;

export function isPlainName(name: unknown): name is string {
  return typeof name === 'string' && PLAIN_NAME.test(name);
}

/** Tools whose names are distinct. Two with the same name, or with names that are easily confused, are both refused. */
export function distinct(tools: readonly Json[]): {
  readonly tools: readonly ToolOutput[];
  readonly refused: readonly string[];
} {
  const named = tools.flatMap((tool) => (isObject(tool) && isPlainName(tool.name) ? [{ name: tool.name, tool }] : []));
  const counts = new Map<string, number>();
  for (const { name } of named) counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1);
  const unique = named.filter(({ name }) => counts.get(name.toLowerCase()) === 1);
  const kept = new Set(unique.map(({ name }) => name));
  const refused = tools.flatMap((tool) => {
    const name = isObject(tool) ? asText(tool.name) : '';
    return kept.has(name) ? [] : [name];
  });
  return { tools: unique, refused };
}

/** `tasks`: the server can make a task of any call, without declaring it for a single tool. */
export function toSkill(server: string, { name, tool }: ToolOutput, now: string, tasks = false): Skill {
  const { description, title, inputSchema, outputSchema, annotations } = tool;
  const hints = { ...(isObject(annotations) ? annotations : {}), ...(title !== undefined && { title }) };
  return {
    id: `mcp:${server}:${name}`,
    object: 'skill',
    created_at: now,
    updated_at: now,
    metadata: { annotations: hints, mcp: { server, tool: name, raw: tool, ...(tasks && { tasks }) } },
    name,
    description: typeof description === 'string' ? description : typeof title === 'string' ? title : name,
    input_schema: isObject(inputSchema) ? inputSchema : null,
    output_schema: isObject(outputSchema) ? outputSchema : null,
    source: server,
  };
}

/** The configured effect overrides the server's annotations, and an untrusted server's annotations do not count. */
export function toEffect(tool: JsonObject, name: string, { trusted, effects }: UpstreamSettings): Effect {
  const hints = isObject(tool.annotations) ? tool.annotations : {};
  if (Object.hasOwn(effects, name)) return effects[name] as Effect;
  return trusted ? effectOf(hints) : 'unknown';
}

/** A tool's annotations, and whether they are believed. Core adds `tainted` where the session has read untrusted content. */
export function toAttributes(
  tool: JsonObject | undefined,
  { trusted }: UpstreamSettings,
): NonNullable<Action['attributes']> {
  const hints = isObject(tool?.annotations) ? tool.annotations : {};
  const said = HINTS.map(({ wire, attribute, otherwise }) => [
    attribute,
    trusted && typeof hints[wire] === 'boolean' ? hints[wire] : otherwise,
  ]);
  return { ...Object.fromEntries(said), trusted, tainted: false };
}

/** Whether the results of this tool may contain untrusted content. */
export function taints(tool: JsonObject | undefined, { trusted }: UpstreamSettings): boolean {
  const hints = isObject(tool?.annotations) ? tool.annotations : {};
  return !trusted || hints.openWorldHint !== false;
}

export function toToolResult(
  outcome: FrameOutcome,
  egress: { host: string; purpose: string } | undefined,
  server: string,
  about?: CallerReference,
): ToolResult {
  const effects = egress && {
    effects: [{ type: 'network' as const, destination: egress.host, purpose: egress.purpose }],
  };
  const remote = remoteIn(outcome, server, about);
  const attributes = remote ? { remote, ...effects } : effects;
  if ('error' in outcome) {
    const { message } = outcome.error;
    return {
      status: 'error',
      output: null,
      error: message,
      ext: { mcp: { error: outcome.error as never } },
      ...attributes,
    };
  }
  const { result } = outcome;
  if (result.isError !== true) return { status: 'ok', output: result, ...attributes };
  return { status: 'error', output: result, error: firstText(result) ?? 'the tool failed', ...attributes };
}

/** The opposite direction: the outcome of a call as its caller receives it. Refusals are results, so that a model can read them. */
export function toWireOutcome(act: ActResult, structured: boolean): FrameOutcome {
  if (act.kind === 'refused') {
    const { code = 'policy_violation', rule_id, retry_after_ms } = act.decision;
    return refused(
      act.reason,
      structured && { code, ...(rule_id && { rule_id }), ...(retry_after_ms && { retry_after_ms }) },
    );
  }
  const { result } = act;
  const error = (result.ext?.mcp as { error?: FrameOutcome & { code: number; message: string } } | undefined)?.error;
  if (error) return { error };
  if (isWireResult(result.output)) return { result: result.output };
  if (result.status === 'ok') return { result: toContent(result.output) };
  return refused(result.error ?? 'the tool failed', structured && { code: result.code ?? 'upstream_unavailable' });
}

/** The result that the caller of an ended call has received, read from the log. Other events are no frames of this protocol. */
export function toWireEnd({ event, payload }: CoreEvent): FrameOutcome[] {
  if (event === 'tool.denied') return [refused(payload.reason ?? '', { code: 'policy_violation' })];
  if (event !== 'tool.completed' && event !== 'tool.failed') return [];
  const { output = null, error, code, status = event === 'tool.completed' ? 'ok' : 'error' } = payload;
  const result = { status, output, ...(error !== undefined && { error }), ...(code !== undefined && { code }) };
  return [toWireOutcome({ kind: 'done', result }, true)];
}

/** The params as received, with the decided tool and arguments. If those are unchanged, nothing is copied. */
export function toCallParams(params: JsonObject, tool: string, args: JsonObject): JsonObject {
  if (params.name === tool && params.arguments === args) return params;
  const { arguments: said, ...rest } = params;
  // Some servers take null for no arguments and some refuse it, which is theirs to say.
  if ((said === undefined || said === null) && Object.keys(args).length === 0) return { ...params, name: tool };
  return { ...rest, name: tool, arguments: args };
}

/** A request in no row of the table was decided without its `_meta`, which is restored here. */
export function withMeta(
  method: string,
  params: JsonObject,
  { params: { _meta } }: Pick<McpRequestContext, 'params'>,
): JsonObject {
  return methodRow(method) || _meta === undefined ? params : { ...params, _meta };
}

/** A result is text for a model: of a call that changes something, it does not say what. */
export function withLoss(result: ToolResult, effect: Effect): ToolResult {
  if (result.status !== 'ok' || result.remote || !CHANGING.has(effect)) return result;
  return {
    ...result,
    loss: [{ aspect: 'effects', why: 'the result of the server does not say what the call changed' }],
  };
}
const CHANGING: ReadonlySet<Effect> = new Set(['write', 'delete', 'send', 'publish', 'pay']);

/** Whether the output is an MCP result; tools of other protocols return other shapes. */
function isWireResult(output: Json): output is JsonObject {
  return (
    isObject(output) && (Array.isArray(output.content) || isObject(output.task) || output.resultType !== undefined)
  );
}

function toContent(output: Json): JsonObject {
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return { content: [{ type: 'text', text }], ...(isObject(output) && { structuredContent: output }) };
}

export function refused(reason: string, details: JsonObject | false): FrameOutcome {
  return {
    result: {
      content: [{ type: 'text', text: reason }],
      ...(details && { structuredContent: { error: { message: reason, ...details } } }),
      isError: true,
    },
  };
}

export function firstText({ content }: JsonObject): string | undefined {
  const block = Array.isArray(content)
    ? content.find((each) => isObject(each) && typeof each.text === 'string')
    : undefined;
  return isObject(block) ? asText(block.text) : undefined;
}
