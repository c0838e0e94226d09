/** A gateway whose work has limits. */
import type { Fact, ProposedAction } from '../../../src/model/commands.ts';
import type { Quota } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Row, Sink } from '../../../src/ports/index.ts';
import { scriptedAgent } from '../gateway/agents.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';
import { countingTools } from '../gateway/tools.ts';

export const ALLOW = '- { id: all, when: { kind: tool }, then: allow }';
export const SEND: ProposedAction = { kind: 'tool', tool: 'send', arguments: {} };

export async function newQuota(t: TestGateway, limits: Record<string, number>, more: JsonObject = {}): Promise<string> {
  const body = { scope: 'workspace', limits, ...more };
  return (await t.send('resource.create', { object: 'quota', body })).resource.id;
}

export async function used(t: TestGateway, id: string): Promise<Quota['usage']> {
  return (await t.runtime.store.get<Quota & Row>('quota', id))!.usage;
}

/** One agent in a workspace with these limits. */
export async function limited(
  limits: Record<string, number>,
  script: (sink: Sink) => Promise<void> = async () => {},
  { quota, ...options }: TestGatewayOptions & { quota?: JsonObject } = {},
) {
  const tools = countingTools({ send: { effect: 'send' } });
  const agent = scriptedAgent(async (sink) => {
    await script(sink);
    return undefined;
  });
  const t = await openTestGateway({ rules: ALLOW, ...options, agents: [agent], tools: [tools] });
  const id = await newQuota(t, limits, quota);
  const room = await t.room({ workspace: { quota_id: id } });
  return { t, tools, room, quota: id };
}

export const usage = (payload: JsonObject): Fact => ({ event: 'vendor.tollbridge.usage', payload });
