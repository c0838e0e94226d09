/** Work that has to ask: an agent of the gateway that wants to send, and someone outside who asks before each step. */
import type { Actor } from '../../../src/model/actions.ts';
import type { ProposedAction } from '../../../src/model/commands.ts';
import type { ActResult, Sink } from '../../../src/ports/index.ts';
import { ana } from './actors.ts';
import { scriptedAgent } from './agents.ts';
import { openTestGateway, type TestGatewayOptions } from './test-gateway.ts';
import { countingTools, SEND } from './tools.ts';

export const HOUR = 60 * 60 * 1000;

/** One agent that sends, in a gateway without rules: sending is asked about. */
export async function asking(
  options: TestGatewayOptions & { resume?: boolean; script?: (sink: Sink, signal: AbortSignal) => Promise<void> } = {},
) {
  const tools = countingTools({ send: { effect: 'send' } });
  const results: ActResult[] = [];
  const act = async (sink: Sink, signal: AbortSignal) => {
    const result = await sink.act(SEND);
    if (!signal.aborted) results.push(result);
  };
  const agent = scriptedAgent(
    async (sink, _work, signal) => {
      await (options.script ?? act)(sink, signal);
      return undefined;
    },
    { resume: options.resume ?? false },
  );
  const t = await openTestGateway({ ...options, agents: [agent], tools: [tools] });
  const room = await t.room();
  const task = await room.task();
  return { t, room, task, tools, results };
}

/** Someone outside works on a task and asks before each step. */
export async function outside(options: TestGatewayOptions = {}) {
  const t = await openTestGateway(options);
  const task = await (await t.room()).task({ agent: 'none' });
  const propose = (action: Partial<ProposedAction> = {}, actor: Actor = ana, wait_ms = 0) =>
    t.send('action.propose', { task_id: task.id, action: { ...SEND, effect: 'send', ...action }, wait_ms }, { actor });
  return { t, task, propose };
}
