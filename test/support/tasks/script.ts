/** Agents that do what a test says, and tools that count how often they were really run. */
import type { Action, ToolResult } from '../../../src/model/actions.ts';
import type { End } from '../../../src/model/commands.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Effect } from '../../../src/model/words.ts';
import type { Abilities, AgentBackend, Sink, ToolBackend, Work } from '../../../src/ports/index.ts';

export interface Stage {
  readonly work: Work;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  /** What was said to the agent while it worked. */
  readonly received: JsonObject[];
}
export type Script = (stage: Stage) => Promise<unknown>;

export interface Scripted extends AgentBackend {
  readonly starts: string[];
}

/** An agent whose whole mind is one function. What it returns is its end; nothing means that it completed. */
export function scripted(name: string, script: Script, abilities: Partial<Abilities> = {}): Scripted {
  const starts: string[] = [];
  return {
    name,
    abilities: { resume: false, evidence: 'held', ...abilities },
    starts,
    async start(work, sink, signal) {
      starts.push(work.task.id);
      const received: JsonObject[] = [];
      return {
        done: (async () => ((await script({ work, sink, signal, received })) ?? { state: 'COMPLETED' }) as End)(),
        steer: (message) => received.push(message),
      };
    },
  };
}

/** Works until it is asked to stop. */
export const patient: Script = ({ signal }) => stopped(signal);

export async function stopped(signal: AbortSignal): Promise<undefined> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  return undefined;
}

export function text(words: string, more: JsonObject = {}) {
  return {
    event: 'agent.message' as const,
    payload: { message: { role: 'assistant', parts: [{ type: 'text', text: words, visibility: 'public' }], ...more } },
  };
}

export interface Toolbox extends ToolBackend {
  /** Every call that really ran, with the arguments it ran with. */
  readonly ran: { tool: string; arguments: JsonObject; task: string | undefined }[];
}
export type ToolScript = (action: Action, signal: AbortSignal) => Promise<ToolResult> | ToolResult;

/** Tools that answer with what they were given unless a script says otherwise. */
export function toolbox(
  name: string,
  tools: Readonly<Record<string, ToolScript | undefined>>,
  effect: Effect = 'write',
): Toolbox {
  const ran: Toolbox['ran'] = [];
  const list = Object.keys(tools).map((tool) => ({
    id: `skill_${tool}`,
    object: 'skill' as const,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
    metadata: {},
    name: tool,
    description: `does ${tool}`,
    input_schema: null,
    output_schema: null,
  }));
  return {
    name,
    ran,
    list: async () => list,
    effect: () => effect,
    async call(action, signal) {
      ran.push({ tool: action.tool ?? '', arguments: action.arguments, task: action.task_id });
      const script = tools[action.tool ?? ''];
      return script ? await script(action, signal) : { status: 'ok', output: { got: action.arguments } };
    },
  };
}

/** A door that opens once. */
export function latch(): { open(): void; readonly opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}
