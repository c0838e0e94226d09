/** The oracle itself: it passes what was decided, and names what was not, what came too early and what ran twice. */
import { expect, test } from 'vitest';
import { scriptedAgent } from '../support/gateway/agents.ts';
import { openTestGateway, type TestGateway } from '../support/gateway/test-gateway.ts';
import { countingTools } from '../support/gateway/tools.ts';
import { type Contact, checkActs, newestPosition } from '../support/oracle/oracle.ts';

const RULES = `
- { id: reads, when: { tool: look }, then: allow }
- { id: sends-less, when: { tool: send }, then: modify, set: { force: false } }
`;

/** A gateway whose tools record each contact, and an agent that looks, sends, pays and is refused once. */
async function recorded(): Promise<{ gateway: TestGateway; contacts: Contact[] }> {
  const contacts: Contact[] = [];
  let gateway: TestGateway | undefined;
  const seen = (tool: string) => (args: Contact['arguments']) => {
    contacts.push({ tool, arguments: args, after: newestPosition(gateway!.dir) });
    return { status: 'ok' as const, output: null };
  };
  const tools = countingTools({
    look: { effect: 'read', run: seen('look') },
    send: { effect: 'send', run: seen('send') },
    pay: { effect: 'pay', run: seen('pay') },
  });
  const agent = scriptedAgent(async (sink) => {
    await sink.act({ kind: 'tool', tool: 'look', arguments: { at: 'it' } });
    await sink.act({ kind: 'tool', tool: 'send', arguments: { to: 'bo', force: true } });
    await sink.act({ kind: 'tool', tool: 'pay', arguments: { amount: 5, password: 'open sesame' } });
    await sink.act({ kind: 'tool', tool: 'pay', arguments: { amount: 6 } });
    return undefined;
  });
  gateway = await openTestGateway({ agents: [agent], tools: [tools], rules: RULES });
  const task = await (await gateway.room()).task();
  const [first] = await gateway.asks(task.id);
  await gateway.answer(first!.id);
  const second = (await gateway.asks(task.id)).find(({ state }) => state === 'open');
  await gateway.answer(second!.id, { approved: false, reason: 'no' });
  await gateway.until(task.id);
  return { gateway, contacts };
}

test('passes what rules allowed, what a rule rewrote and what a person approved, secrets included', async () => {
  const { gateway, contacts } = await recorded();
  expect(contacts.map(({ tool, arguments: args }) => [tool, args])).toEqual([
    ['look', { at: 'it' }],
    ['send', { to: 'bo', force: false }],
    ['pay', { amount: 5, password: 'open sesame' }],
  ]);
  expect(await checkActs(gateway.dir, contacts)).toEqual([]);
});

test('names an act with other arguments, under another tool, twice, before its allow, or after a no', async () => {
  const { gateway, contacts } = await recorded();
  const [look, send, pay] = contacts as [Contact, Contact, Contact];
  const broken = async (...more: Contact[]) => await checkActs(gateway.dir, more);
  expect(await broken({ ...look, arguments: { at: 'that' } })).toEqual([
    'look {"at":"that"} was seen, and no unused allow in the log covers it',
  ]);
  expect(await broken({ ...look, tool: 'send' })).toHaveLength(1);
  expect(await broken({ ...send, arguments: { to: 'bo', force: true } })).toHaveLength(1);
  expect(await broken(look, look)).toHaveLength(1);
  expect(await broken({ ...pay, after: look.after })).toEqual([
    'pay {"amount":5,"password":"open sesame"} was seen before its allow was in the log',
  ]);
  expect(await broken({ ...pay, arguments: { amount: 6 }, after: Number.MAX_SAFE_INTEGER })).toHaveLength(1);
});
