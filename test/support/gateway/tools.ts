/** Tools that remember how often and with what they were called. */
import type { Action, ToolResult } from '../../../src/model/actions.ts';
import type { ProposedAction } from '../../../src/model/commands.ts';
import type { Skill } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Effect } from '../../../src/model/words.ts';
import type { ToolBackend } from '../../../src/ports/index.ts';

/** The act most tests are about: something leaves the gateway. */
export const SEND: ProposedAction = { kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: { to: 'bo' } };

export interface ToolSpec {
  readonly effect?: Effect;
  readonly description?: string;
  readonly run?: (args: JsonObject, action: Action, signal: AbortSignal) => Promise<ToolResult> | ToolResult;
}

export interface CountingTools extends ToolBackend {
  readonly calls: { readonly tool: string; readonly id: string | undefined; readonly arguments: JsonObject }[];
  /** From now on the tool is described otherwise; undefined takes it away. */
  redefine(tool: string, description: string | undefined): void;
}

export function countingTools(specs: Readonly<Record<string, ToolSpec>>, name = 'box'): CountingTools {
  const calls: CountingTools['calls'] = [];
  const skills = new Map(Object.entries(specs).map(([tool, spec]) => [tool, skill(tool, spec.description ?? tool)]));
  return {
    name,
    calls,
    list: async () => [...skills.values()],
    effect: (tool) => specs[tool]?.effect,
    async call(action, signal) {
      const tool = action.tool ?? '';
      calls.push({ tool, id: action.tool_call_id, arguments: action.arguments });
      return (await specs[tool]?.run?.(action.arguments, action, signal)) ?? { status: 'ok', output: { did: tool } };
    },
    redefine(tool, description) {
      if (description === undefined) skills.delete(tool);
      else skills.set(tool, skill(tool, description));
    },
  };
}

function skill(name: string, description: string): Skill {
  return {
    id: `skill_${name}`,
    object: 'skill',
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
    metadata: {},
    name,
    description,
    input_schema: null,
    output_schema: null,
  };
}
