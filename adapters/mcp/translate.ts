/** Tools and results, from the wire's shape to ours and back. Pure. What runs is never built here from anything but what was decided. */

import { effectOf, HINTS } from '../../mappings/mcp.ts';
import type { Action, ActResult, Effect, Json, JsonObject, Skill, ToolResult } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import type { UpstreamSettings } from './config.ts';
import { isObject, type Outcome } from './frames.ts';

export interface Told {
  readonly name: string;
  readonly tool: JsonObject;
}

/** Letters that look like themselves: nothing a person could take for another name. */
const PLAIN_NAME = /^[A-Za-z0-9_./-]{1,128}$/;

export function isPlainName(name: unknown): name is string {
  return typeof name === 'string' && PLAIN_NAME.test(name);
}

/** Tools that can be told apart. Two of the same name, or with names one could mix up, are neither. */
export function distinct(tools: readonly Json[]): {
  readonly told: readonly Told[];
  readonly refused: readonly string[];
} {
  const named = tools.flatMap((tool) => (isObject(tool) && isPlainName(tool.name) ? [{ name: tool.name, tool }] : []));
  const counts = new Map<string, number>();
  for (const { name } of named) counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1);
  const told = named.filter(({ name }) => counts.get(name.toLowerCase()) === 1);
  const kept = new Set(told.map(({ name }) => name));
  const refused = tools.flatMap((tool) => {
    const name = isObject(tool) ? asText(tool.name) : '';
    return kept.has(name) ? [] : [name];
  });
  return { told, refused };
}

/** `tasks`: its server makes tasks of calls, without saying so of any one tool. */
export function toSkill(server: string, { name, tool }: Told, now: string, tasks = false): Skill {
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

/** What the house says beats what the server says, and an untrusted server's word is none. */
export function toEffect(tool: JsonObject, name: string, { trusted, effects }: UpstreamSettings): Effect {
  const hints = isObject(tool.annotations) ? tool.annotations : {};
  if (Object.hasOwn(effects, name)) return effects[name] as Effect;
  return trusted ? effectOf(hints) : 'unknown';
}

/** What a tool says of itself, and whether it is believed. Core says `tainted` where the session has read what others wrote. */
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

/** Whether what comes back from this tool may hold anyone's words. */
export function taints(tool: JsonObject | undefined, { trusted }: UpstreamSettings): boolean {
  const hints = isObject(tool?.annotations) ? tool.annotations : {};
  return !trusted || hints.openWorldHint !== false;
}

export function toToolResult(outcome: Outcome, egress: { host: string; purpose: string } | undefined): ToolResult {
  const effects = egress && {
    effects: [{ type: 'network' as const, destination: egress.host, purpose: egress.purpose }],
  };
  if ('error' in outcome) {
    const { message } = outcome.error;
    return {
      status: 'error',
      output: null,
      error: message,
      ext: { mcp: { error: outcome.error as never } },
      ...effects,
    };
  }
  const { result } = outcome;
  if (result.isError !== true) return { status: 'ok', output: result, ...effects };
  return { status: 'error', output: result, error: firstText(result) ?? 'the tool failed', ...effects };
}

/** The other way: what became of a call, as its caller hears it. Refusals are results a model can read. */
export function toWireOutcome(act: ActResult, structured: boolean): Outcome {
  if (act.kind === 'refused') {
    const { code = 'policy_violation', rule_id, retry_after_ms } = act.decision;
    return refused(
      act.reason,
      structured && { code, ...(rule_id && { rule_id }), ...(retry_after_ms && { retry_after_ms }) },
    );
  }
  const { result } = act;
  const error = (result.ext?.mcp as { error?: Outcome & { code: number; message: string } } | undefined)?.error;
  if (error) return { error };
  if (isWireResult(result.output)) return { result: result.output };
  if (result.status === 'ok') return { result: toContent(result.output) };
  return refused(result.error ?? 'the tool failed', structured && { code: result.code ?? 'upstream_unavailable' });
}

/** What a server of this protocol answered; a tool of another kind answers in its own way. */
function isWireResult(output: Json): output is JsonObject {
  return (
    isObject(output) && (Array.isArray(output.content) || isObject(output.task) || output.resultType !== undefined)
  );
}

function toContent(output: Json): JsonObject {
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return { content: [{ type: 'text', text }], ...(isObject(output) && { structuredContent: output }) };
}

export function refused(reason: string, details: JsonObject | false): Outcome {
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
