/**
 * What every tool backend owes core (`src/ports/tools.ts`): a stable list without effects, one effect per call, an end on its signal,
 * and a reason, never a hang, when the tool or its server fails.
 */
import { describe, expect, test } from 'vitest';
import type { Action, ToolResult } from '../../../src/model/actions.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { ToolBackend } from '../../../src/ports/index.ts';
import { actionOf } from '../../support/gateway/demo-agent.ts';

export interface ToolCall {
  readonly tool: string;
  readonly arguments: JsonObject;
}

export interface ToolsUnderTest {
  readonly backend: ToolBackend;
  /** A call that succeeds, and text that its output contains. */
  readonly works: ToolCall & { readonly says: string };
  /** A call that the tool itself answers with an error. */
  readonly fails: ToolCall;
  /** A call that goes on until it is stopped; `begun` settles once the tool has it. */
  readonly waits: ToolCall & { begun(): Promise<unknown> };
  /** The calls that reached the tools, by name. */
  calls(): readonly string[];
  /** Takes the server away. Absent: the tools run in this process. */
  readonly gone?: () => Promise<void>;
}

const never = () => new AbortController().signal;

export function toolBackendContract(name: string, make: () => Promise<ToolsUnderTest>): void {
  describe(`tool backend contract: ${name}`, () => {
    test('the list is stable, names each tool once, and listing has no effect', async () => {
      const { backend, works, fails, calls } = await make();
      const first = await backend.list();
      const before = structuredClone(first);
      const names = first.map((skill) => skill.name);
      expect(names).toEqual(expect.arrayContaining([works.tool, fails.tool]));
      expect(new Set(names).size).toBe(names.length);
      expect(await backend.list()).toEqual(before);
      expect(await backend.list('session_1')).toEqual(before);
      expect(first).toEqual(before);
      expect(calls()).toEqual([]);
    });

    test('a call reaches the tool once, with its arguments, and changes nothing of the action', async () => {
      const { backend, works, calls } = await make();
      await backend.list();
      const action = call(works);
      const before = structuredClone(action);
      const result = await backend.call(action, never());
      expect(result).toMatchObject({ status: 'ok' });
      expect(JSON.stringify(result.output)).toContain(works.says);
      expect(calls()).toEqual([works.tool]);
      expect(action).toEqual(before);
    });

    test('calls at the same time get their own results', async () => {
      const { backend, works, fails } = await make();
      await backend.list();
      const results = await Promise.all([works, fails, works].map((each) => outcome(backend, each)));
      expect(results.map(({ status }) => status)).toEqual(['ok', 'error', 'ok']);
    });

    test('a tool that fails gives a reason', async () => {
      const { backend, fails } = await make();
      await backend.list();
      const result = await outcome(backend, fails);
      expect(result.status).toBe('error');
      expect(reason(result)).toMatch(/\S/);
    });

    test.each(['no_such_tool', 'toString', '__proto__', ''])(
      'the unknown tool %j fails with a reason',
      async (tool) => {
        const { backend, calls } = await make();
        await backend.list();
        const result = await outcome(backend, { tool, arguments: {} });
        expect(result.status).toBe('error');
        expect(reason(result)).toMatch(/\S/);
        expect(backend.effect?.(tool)).toBeUndefined();
        expect(calls().filter((each) => each !== tool)).toEqual([]);
      },
    );

    test('a call whose signal has fired before it begins has no effect', async () => {
      const { backend, works, calls } = await make();
      await backend.list();
      expect((await outcome(backend, works, AbortSignal.abort())).status).toBe('error');
      expect(calls()).toEqual([]);
    });

    test('a running call ends on its signal, and the next call works', async () => {
      const { backend, works, waits } = await make();
      await backend.list();
      const stop = new AbortController();
      const stopped = outcome(backend, waits, stop.signal);
      await waits.begun();
      stop.abort();
      expect((await stopped).status).toBe('error');
      expect((await outcome(backend, works)).status).toBe('ok');
    });

    test('a server that is gone is a failure with a reason', async () => {
      const { backend, works, gone } = await make();
      await backend.list();
      await gone?.();
      const result = await outcome(backend, works);
      expect(result.status).toBe(gone ? 'error' : 'ok');
      if (gone) expect(reason(result)).toMatch(/\S/);
    });

    test('closing finishes, twice as well, and a later call does not hang', async () => {
      const { backend, works } = await make();
      await backend.list();
      await backend.close?.();
      await backend.close?.();
      expect((await outcome(backend, works)).status).toBe(backend.close ? 'error' : 'ok');
    });
  });
}

let ids = 0;
function call({ tool, arguments: args }: ToolCall): Action {
  ids += 1;
  return { ...actionOf({ kind: 'tool', tool, arguments: args, tool_call_id: `call_${ids}` }), id: `action_${ids}` };
}

/** A result, or a fault as the failed result that core makes of it. */
async function outcome(backend: ToolBackend, each: ToolCall, signal = never()): Promise<ToolResult> {
  try {
    return await backend.call(call(each), signal);
  } catch (cause) {
    return { status: 'error', output: null, error: (cause as Error).message };
  }
}

function reason({ error, output }: ToolResult): string {
  return error ?? JSON.stringify(output);
}
