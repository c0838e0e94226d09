/** One agent, one act, and what was decided about it. */
import type { Decision } from '../../../src/model/actions.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { ActResult } from '../../../src/ports/index.ts';
import { scriptedAgent } from './agents.ts';
import { of, openTestGateway, type TestGateway, type TestGatewayOptions } from './test-gateway.ts';
import { type CountingTools, countingTools } from './tools.ts';

interface Acted {
  readonly t: TestGateway;
  readonly tools: CountingTools;
  readonly result: ActResult;
  readonly log: CoreEvent[];
  readonly decision: Decision & { action: JsonObject };
}

/** One agent, one act: `send` to bo, unless configured otherwise. */
export async function act(
  options: TestGatewayOptions & { persona?: JsonObject; tool?: string; answer?: boolean } = {},
): Promise<Acted> {
  const tools = countingTools({ send: { effect: 'send' }, look: { effect: 'read' }, odd: {} });
  const results: ActResult[] = [];
  const agent = scriptedAgent(async (sink) => {
    const call = { kind: 'tool' as const, tool: options.tool ?? 'send', tool_call_id: 'c1', arguments: { to: 'bo' } };
    results.push(await sink.act(call));
    return undefined;
  });
  const t = await openTestGateway({ ...options, agents: [agent], tools: [tools] });
  const room = await t.room(options.persona ? { persona: options.persona } : {});
  const task = await room.task();
  if (options.answer !== undefined) {
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id, { approved: options.answer });
  }
  await t.until(task.id);
  const log = await t.events(task.id);
  const { decision, action } = lastDecision(log).payload as unknown as { decision: Decision; action: JsonObject };
  return { t, tools, result: results[0]!, log, decision: { ...decision, action } };
}

/** The last decision about the act, not the one that let the task in. */
export function lastDecision(log: readonly CoreEvent[]): CoreEvent {
  return of(log, 'vendor.tollbridge.decided')
    .filter(({ payload }) => (payload.action as JsonObject).kind === 'tool')
    .at(-1)!;
}

export const ALLOW_SEND = '- { id: may-send, when: { kind: tool, tool: send }, then: allow, say: sending is fine }';
