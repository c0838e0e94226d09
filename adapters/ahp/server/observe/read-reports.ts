/** Reads what an agent reports of a call or a response. Only an explicit success is one, and a repeated report counts once. */
import { asText, type Deps, type Fact, isObject, type Json, type JsonObject } from '../../../../src/index.ts';
import { type AhpEvent, fingerprint, readCall } from '../../translate.ts';
import type { OpenCall, OpenCalls } from '../open-calls.ts';
import type { AgentReport, SupervisedRun } from '../supervised-tasks.ts';

/** A result, paired with its call; without one it is only observed. */
export function callEnded(run: SupervisedRun, { payload, timestamp }: AhpEvent, { ids }: Pick<Deps, 'ids'>): Fact[] {
  const { tool, arguments: args, argumentsKey } = readCall(payload);
  const result = resultOf(members(payload));
  const report = fingerprint(asText(timestamp), payload as Json);
  const twice = run.reports.has(report);
  run.reports.add(report);
  if (run.reports.size > MOST_REPORTS) run.reports.delete(run.reports.values().next().value as string);
  const paired =
    pairOf(run.open, tool, args, argumentsKey) ??
    pairOf(run.refused, tool, args, argumentsKey) ??
    // Agents report their refused calls as failed, often without naming the arguments.
    (result.status === 'error' && !argumentsKey ? run.refused.takeAny(tool) : undefined);
  if (paired) return [ended(paired, result)];
  // A repeated report, and no open call is left that it could be about.
  if (twice) return [];
  const id = ids.next('call');
  const requested = {
    tool_call_id: id,
    name: tool,
    kind: 'tool',
    input: argumentsKey ? args : {},
    effect: 'unknown',
    evidence: 'observed',
  };
  return [{ event: 'tool.requested', payload: requested }, ended({ id, tool }, result)];
}

function pairOf(calls: OpenCalls, tool: string, args: JsonObject, argumentsKey: string): OpenCall | undefined {
  if (argumentsKey) return calls.take(fingerprint(tool, args));
  // Arguments beside the other members of the payload are separated from members that only a report has.
  const asked = Object.entries(args).filter(([name]) => !OF_A_REPORT.has(name));
  return calls.take(fingerprint(tool, Object.fromEntries(asked))) ?? calls.takeOnly(tool);
}
const OF_A_REPORT = new Set([
  ...['result', 'output', 'success', 'status', 'error', 'exit_code', 'duration_ms', 'usage', 'response_text'],
]);
const MOST_REPORTS = 512;

/** Some agents report a model response in two kinds of event; it is one response, and its tokens count once. */
export function isSameResponse(before: AgentReport, now: AgentReport): boolean {
  if (before.by === now.by || before.span !== now.span) return false;
  const [none, equal] = [before.usage === 'null' || now.usage === 'null', before.usage === now.usage];
  if (before.text === '' || now.text === '') return equal && !none;
  return (equal || none) && (before.text.startsWith(now.text) || now.text.startsWith(before.text));
}

interface Result {
  readonly status: 'ok' | 'error';
  readonly output?: Json;
  readonly error?: string;
}

export function ended({ id, tool }: OpenCall, result: Result): Fact {
  const payload = { tool_call_id: id, name: tool, ...result } as JsonObject;
  return { event: result.status === 'ok' ? 'tool.completed' : 'tool.failed', payload };
}

const GOOD = new Set(['success', 'succeeded', 'ok', 'completed', 'done']);

/** Only an explicit status is a success; a missing one is not. */
function resultOf(payload: JsonObject): Result {
  const result = isObject(payload.result) ? (payload.result as JsonObject) : payload;
  const output = result.output ?? (payload.result !== undefined && !isObject(payload.result) ? payload.result : null);
  const exit = result.exit_code;
  const said = result.success ?? result.status ?? payload.status;
  const good = said === true || (typeof said === 'string' && GOOD.has(said.toLowerCase()));
  if (good && (exit === undefined || exit === null || exit === 0)) return { status: 'ok', output: output as Json };
  const error =
    text(result.error) ??
    (typeof exit === 'number'
      ? `exit code ${exit}`
      : `status ${typeof said === 'string' ? said : (JSON.stringify(said) ?? 'not told')}`);
  return { status: 'error', output: output as Json, error };
}

export function usageOf(payload: JsonObject, { model }: SupervisedRun, call_id: string): JsonObject | undefined {
  if (!isObject(payload.usage)) return undefined;
  const { usage } = payload as { usage: JsonObject };
  const input = amount(usage.input_tokens ?? usage.prompt_tokens);
  const output = amount(usage.output_tokens ?? usage.completion_tokens);
  if (input === undefined && output === undefined) return undefined;
  return {
    call_id,
    ...model,
    ...(input !== undefined && { input_tokens: input }),
    ...(output !== undefined && { output_tokens: output }),
  };
}

function amount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}

export function members(payload: Json): JsonObject {
  return isObject(payload) ? payload : {};
}

export function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
