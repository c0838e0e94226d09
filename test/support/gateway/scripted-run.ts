/** A gateway in which one agent acts as a script says, and everything is allowed unless configured otherwise. */
import { createHash } from 'node:crypto';
import type { Sink } from '../../../src/ports/index.ts';
import { scriptedAgent } from './agents.ts';
import { openTestGateway, type TestGatewayOptions } from './test-gateway.ts';
import { countingTools, type ToolSpec } from './tools.ts';

export const ALLOW = '- { id: all, when: { kind: tool }, then: allow }';

/** A gateway in which one agent does what the script says, with these tools. */
export async function play(
  script: (sink: Sink, signal: AbortSignal) => Promise<void>,
  { specs = {}, ...options }: TestGatewayOptions & { specs?: Record<string, ToolSpec> } = {},
) {
  const tools = countingTools({ send: { effect: 'send' }, look: { effect: 'read' }, ...specs });
  const agent = scriptedAgent(async (sink, _work, signal) => {
    await script(sink, signal);
    return undefined;
  });
  const t = await openTestGateway({
    rules: ALLOW,
    ...options,
    agents: [agent],
    tools: [tools, ...(options.tools ?? [])],
  });
  const room = await t.room();
  const task = await room.task();
  return { t, tools, room, task };
}

export function sha256(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
