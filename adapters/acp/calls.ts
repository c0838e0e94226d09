/**
 * The calls of one turn: opened by whatever mentions them first, told once as requested, ended once. What an agent does
 * without asking is on record as told, no more.
 */

import { toolStatus } from '../../mappings/acp.ts';
import { CANCELLED_CATEGORY, DENIED_CATEGORY } from '../../mappings/acp-harn.ts';
import type { Fact, Json, JsonObject } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { effectsOf, sha256 } from './effects.ts';
import { toolFields } from './harn.ts';
import { listOf, textOf, within } from './shapes.ts';
import { heard, type Step } from './step.ts';
import { effectOfCall, inputOf, merged, outputOf, type ToldCall, targetOf, toolNameOf } from './translate.ts';

export interface Call {
  /** Ours; the agent's own unless it used that before in this turn. */
  readonly id: string;
  readonly told: ToldCall;
}

interface Open extends Call {
  told: ToldCall;
  requested: boolean;
  asked: boolean;
  running: boolean;
  ended: boolean;
}

export interface Calls {
  told(update: JsonObject): Step[];
  asked(update: JsonObject): { readonly call: Call; readonly steps: Step[] };
  denied(call: Call): void;
  servedBy(hint: { path?: string; terminalId?: string }): { id: string; by: string } | undefined;
  wrote(path: string): void;
  /** What was begun and never told of again. */
  unfinished(): Step[];
}

const LONGEST_NAME = 200;

export function createCalls({ cwd }: { readonly cwd: string }): Calls {
  const calls = new Map<string, Open>();
  const uses = new Map<string, number>();
  const written = new Set<string>();

  /** A call that has ended and is told of as new is another call. */
  function learn(update: JsonObject): { call: Open; fresh: boolean; changed: boolean } {
    const wire = asText(update.toolCallId ?? '');
    const known = calls.get(wire);
    const again = known?.ended && update.sessionUpdate === 'tool_call';
    if (known && !again) {
      const before = JSON.stringify(known.told);
      known.told = merged(known.told, update);
      return { call: known, fresh: false, changed: JSON.stringify(known.told) !== before };
    }
    const count = (uses.get(wire) ?? 0) + 1;
    uses.set(wire, count);
    // A name longer than anyone means is still told apart from others.
    const name = wire.length > LONGEST_NAME ? sha256(wire) : wire;
    const call: Open = {
      id: count === 1 ? name : `${name}#${count}`,
      told: merged(undefined, update),
      requested: false,
      asked: false,
      running: false,
      ended: false,
    };
    calls.set(wire, call);
    return { call, fresh: true, changed: true };
  }

  function use(call: Open, update: JsonObject): Fact {
    const { told, id } = call;
    const payload = {
      tool_call_id: id,
      name: toolNameOf(told),
      input: inputOf(told),
      ...(told.title && { title: told.title }),
      ...(told.kind && { kind: told.kind }),
    };
    const executor = within(update, '_meta', 'harn', 'executor');
    const mcp = within(executor, 'kind') === 'mcp_server';
    return { event: mcp ? 'agent.mcp_tool_use' : 'agent.tool_use', payload, ...heard(update) };
  }

  /** Once, and as late as one can tell that nobody will be asked. */
  function requested(call: Open): Fact[] {
    if (call.requested) return [];
    call.requested = true;
    const { told, id } = call;
    const target = targetOf(told);
    return [
      {
        event: 'tool.requested',
        payload: {
          tool_call_id: id,
          name: toolNameOf(told),
          kind: 'tool',
          input: inputOf(told),
          effect: effectOfCall(told),
          evidence: 'observed',
          ...(target && { target }),
        },
      },
    ];
  }

  function ended(call: Open, ok: boolean, update: JsonObject): Step[] {
    if (call.ended) return [];
    call.ended = true;
    const before = requested(call);
    const output = outputOf(call.told);
    const base = { tool_call_id: call.id, name: toolNameOf(call.told) };
    if (ok) {
      const { files, effects } = effectsOf(call.told, { cwd, written, evidence: call.asked ? 'asked' : 'observed' });
      const done: Fact = {
        event: 'tool.completed',
        payload: { ...base, status: 'ok', output, ...about(update) },
        ...heard(update),
      };
      const told = effects.map((effect): Fact => {
        const evidence = call.asked ? 'asked' : 'observed';
        return { event: 'vendor.tollbridge.side_effect', payload: { ...effect, tool_call_id: call.id, evidence } };
      });
      return [...before, ...files.map((file) => ({ file })), ...told, done];
    }
    const { error, errorCategory } = toolFields(update);
    const why = textOf(error) ?? textOf(output) ?? 'the tool failed without saying why';
    const code = codeOf(errorCategory, update.status);
    const payload = { ...base, status: 'error', output, error: why, ...(code && { code }), ...about(update) };
    return [...before, { event: 'tool.failed', payload, ...heard(update) }];
  }

  function told(update: JsonObject): Step[] {
    if (!textOf(update.toolCallId)) return [];
    const { call, fresh, changed } = learn(update);
    const steps: Step[] = fresh ? [use(call, update)] : [];
    const state = toolStatus.toCore(asText(update.status ?? ''));
    // A call that was refused has ended, whatever its agent makes of that; one that was not is ended by the first to say so.
    if (call.ended) return steps;
    if (state === 'ok' || state === 'error') return [...steps, ...ended(call, state === 'ok', update)];
    const started = state === 'running' && !call.running;
    if (started) {
      call.running = true;
      steps.push(...requested(call));
    }
    if (fresh ? started : started || changed) {
      const span = { id: call.id, kind: 'tool', status: call.running ? 'running' : 'waiting' };
      steps.push({ event: 'span.updated', payload: { span, tool_call_id: call.id }, ...heard(update, fresh) });
    }
    return steps;
  }

  return {
    told,
    asked(update) {
      const { call, fresh } = learn(update);
      call.asked = true;
      // Whoever asks writes down that it was requested.
      call.requested = true;
      return { call, steps: fresh ? [use(call, { ...update, status: 'pending' })] : [] };
    },
    denied({ id }) {
      for (const call of calls.values()) if (call.id === id) call.ended = true;
    },
    servedBy({ path, terminalId }) {
      const open = [...calls.values()].filter((call) => !call.ended);
      const shows = (call: Open, wanted: (item: Json) => boolean) => listOf(call.told.content).some(wanted);
      const byTerminal =
        terminalId && open.find((call) => shows(call, (item) => within(item, 'terminalId') === terminalId));
      if (byTerminal) return { id: byTerminal.id, by: 'terminal' };
      const byPath =
        path &&
        open.find(
          (call) =>
            targetOf(call.told) === path ||
            listOf(call.told.locations).some((place) => within(place, 'path') === path) ||
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

function codeOf(category: Json | undefined, status: Json | undefined): string | undefined {
  if (category === CANCELLED_CATEGORY || status === 'cancelled') return 'canceled';
  if (category === DENIED_CATEGORY) return 'permission_denied';
  return textOf(category);
}

/** What Harn says about the life of a call. */
function about(update: JsonObject): JsonObject {
  const { error: _error, errorCategory: _category, ...fields } = toolFields(update);
  return Object.keys(fields).length > 0 ? { harn: fields } : {};
}
