/**
 * The calls of one turn: opened by their first mention, recorded once as requested, ended once. Acts an agent does without
 * asking are recorded as claims.
 */

import { toolStatus } from '../../../../mappings/acp.ts';
import { CANCELLED_CATEGORY, DENIED_CATEGORY } from '../../../../mappings/acp-harn.ts';
import type { Fact, Json, JsonObject, Loss } from '../../../../src/index.ts';
import { asText } from '../../../../src/index.ts';
import { toolFields } from '../../harn.ts';
import { listOf, textOf, within } from '../../shapes.ts';
import { effectOfCall, inputOf, merged, outputOf, type ReportedCall, targetOf, toolNameOf } from '../../translate.ts';
import { type RecordedFact, updateFact } from '../facts.ts';
import { effectsOf, sha256 } from './effects.ts';

export interface AgentCall {
  /** Our id; the agent's own unless it used that before in this turn. */
  readonly id: string;
  readonly reported: ReportedCall;
}

interface Open extends AgentCall {
  reported: ReportedCall;
  requested: boolean;
  asked: boolean;
  running: boolean;
  /** The end of the call, from the first report. */
  ended: 'ok' | 'error' | 'denied' | undefined;
  /** A later report contradicted that end. */
  contradicted: boolean;
}

interface Calls {
  reported(update: JsonObject): RecordedFact[];
  asked(update: JsonObject): { readonly call: AgentCall; readonly steps: RecordedFact[] };
  denied(call: AgentCall): void;
  servedBy(hint: { path?: string; terminalId?: string }): { id: string; by: string } | undefined;
  wrote(path: string): void;
  /** Facts for calls that began and were never reported again. */
  unfinished(): RecordedFact[];
}

const LONGEST_NAME = 200;

export function createCalls({ cwd }: { readonly cwd: string }): Calls {
  const calls = new Map<string, Open>();
  const uses = new Map<string, number>();
  const written = new Set<string>();

  /** A new report for a call that has ended is another call. */
  function learn(update: JsonObject): { call: Open; fresh: boolean; changed: boolean } {
    const wire = asText(update.toolCallId ?? '');
    const known = calls.get(wire);
    const again = known?.ended && update.sessionUpdate === 'tool_call';
    if (known && !again) {
      const before = JSON.stringify(known.reported);
      known.reported = merged(known.reported, update);
      return { call: known, fresh: false, changed: JSON.stringify(known.reported) !== before };
    }
    const count = (uses.get(wire) ?? 0) + 1;
    uses.set(wire, count);
    // An overlong id is hashed, which keeps it distinct.
    const name = wire.length > LONGEST_NAME ? sha256(wire) : wire;
    const call: Open = {
      id: count === 1 ? name : `${name}#${count}`,
      reported: merged(undefined, update),
      requested: false,
      asked: false,
      running: false,
      ended: undefined,
      contradicted: false,
    };
    calls.set(wire, call);
    return { call, fresh: true, changed: true };
  }

  function use(call: Open, update: JsonObject): Fact {
    const { reported, id } = call;
    const payload = {
      tool_call_id: id,
      name: toolNameOf(reported),
      input: inputOf(reported),
      ...(reported.title && { title: reported.title }),
      ...(reported.kind && { kind: reported.kind }),
    };
    const executor = within(update, '_meta', 'harn', 'executor');
    const mcp = within(executor, 'kind') === 'mcp_server';
    return { event: mcp ? 'agent.mcp_tool_use' : 'agent.tool_use', payload, ...updateFact(update) };
  }

  /** Recorded once, and only when it is clear that no question follows. */
  function requested(call: Open): Fact[] {
    if (call.requested) return [];
    call.requested = true;
    const { reported, id } = call;
    const target = targetOf(reported);
    return [
      {
        event: 'tool.requested',
        payload: {
          tool_call_id: id,
          name: toolNameOf(reported),
          kind: 'tool',
          input: inputOf(reported),
          effect: effectOfCall(reported),
          evidence: 'observed',
          ...(target && { target }),
        },
      },
    ];
  }

  function ended(call: Open, ok: boolean, update: JsonObject): RecordedFact[] {
    const first = call.ended === undefined;
    call.ended ??= ok ? 'ok' : 'error';
    const before = requested(call);
    const output = outputOf(call.reported);
    const base = { tool_call_id: call.id, name: toolNameOf(call.reported) };
    if (ok) {
      const { files, effects } = effectsOf(call.reported, {
        cwd,
        written,
        evidence: call.asked ? 'asked' : 'observed',
      });
      const done: Fact = {
        event: 'tool.completed',
        payload: { ...base, status: 'ok', output, ...about(update), ...lossOf(call, effects.length > 0) },
        ...updateFact(update),
      };
      const reported = effects.map((effect): Fact => {
        const evidence = call.asked ? 'asked' : 'observed';
        return { event: 'vendor.tollbridge.side_effect', payload: { ...effect, tool_call_id: call.id, evidence } };
      });
      return first ? [...before, ...files.map((file) => ({ file })), ...reported, done] : [done];
    }
    const { error, errorCategory } = toolFields(update);
    const why = textOf(error) ?? textOf(output) ?? 'the tool failed without saying why';
    const code = codeOf(errorCategory, update.status);
    const payload = { ...base, status: 'error', output, error: why, ...(code && { code }), ...about(update) };
    return [...before, { event: 'tool.failed', payload, ...updateFact(update) }];
  }

  function reported(update: JsonObject): RecordedFact[] {
    if (!textOf(update.toolCallId)) return [];
    const { call, fresh, changed } = learn(update);
    const steps: RecordedFact[] = fresh ? [use(call, update)] : [];
    const state = toolStatus.toCore(asText(update.status ?? ''));
    const end = stateOf(update);
    // The first report of a call's end counts. A contradiction is recorded once, also that a denied call ran.
    if (call.ended) {
      const disagrees = end !== undefined && (call.ended === 'denied' ? end === 'ok' : end !== call.ended);
      if (!disagrees || call.contradicted) return steps;
      call.contradicted = true;
      return [...steps, ...ended(call, end === 'ok', update)];
    }
    if (end) return [...steps, ...ended(call, end === 'ok', update)];
    const started = state === 'running' && !call.running;
    if (started) {
      call.running = true;
      steps.push(...requested(call));
    }
    if (fresh ? started : started || changed) {
      const span = { id: call.id, kind: 'tool', status: call.running ? 'running' : 'waiting' };
      steps.push({ event: 'span.updated', payload: { span, tool_call_id: call.id }, ...updateFact(update, fresh) });
    }
    return steps;
  }

  return {
    reported,
    asked(update) {
      const { call, fresh } = learn(update);
      call.asked = true;
      // The asking code records the request.
      call.requested = true;
      return { call, steps: fresh ? [use(call, { ...update, status: 'pending' })] : [] };
    },
    denied({ id }) {
      for (const call of calls.values()) if (call.id === id) call.ended ??= 'denied';
    },
    servedBy({ path, terminalId }) {
      const open = [...calls.values()].filter((call) => !call.ended);
      const shows = (call: Open, wanted: (item: Json) => boolean) => listOf(call.reported.content).some(wanted);
      const byTerminal =
        terminalId && open.find((call) => shows(call, (item) => within(item, 'terminalId') === terminalId));
      if (byTerminal) return { id: byTerminal.id, by: 'terminal' };
      const byPath =
        path &&
        open.find(
          (call) =>
            targetOf(call.reported) === path ||
            listOf(call.reported.locations).some((location) => within(location, 'path') === path) ||
            shows(call, (item) => within(item, 'path') === path),
        );
      if (byPath) return { id: byPath.id, by: 'path' };
      return open.length === 1 && open[0] ? { id: open[0].id, by: 'only' } : undefined;
    },
    wrote: (path) => {
      written.add(path);
    },
    unfinished: () => [...calls.values()].filter((call) => !call.ended).flatMap(requested),
  };
}

/** The end of the call, where an update contains it. */
function stateOf({ status }: JsonObject): 'ok' | 'error' | undefined {
  const state = toolStatus.toCore(asText(status ?? ''));
  return state === 'ok' || state === 'error' ? state : undefined;
}

function codeOf(category: Json | undefined, status: Json | undefined): string | undefined {
  if (category === CANCELLED_CATEGORY || status === 'cancelled') return 'canceled';
  if (category === DENIED_CATEGORY) return 'permission_denied';
  return textOf(category);
}

/** Harn's members about the life of a call. */
function about(update: JsonObject): JsonObject {
  const { error: _error, errorCategory: _category, ...fields } = toolFields(update);
  return Object.keys(fields).length > 0 ? { harn: fields } : {};
}

/** Of an act that it asked for, an agent reports the result; what it changed is known only where it shows a diff. */
function lossOf({ asked, reported }: Open, shown: boolean): { loss?: Loss[] } {
  const diff = listOf(reported.content).some((each) => within(each, 'type') === 'diff');
  if (!asked || shown || diff || HARMLESS.has(effectOfCall(reported))) return {};
  return { loss: [{ aspect: 'effects', why: 'the agent ran the call itself and does not say what it changed' }] };
}
const HARMLESS: ReadonlySet<string> = new Set(['read', 'none']);
