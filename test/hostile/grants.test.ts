/** Ways to use an approval for longer than once that was given to another caller, for another definition, or by nobody who may. */
import { expect, onTestFinished, test } from 'vitest';
import { accept } from '../../src/cli/commands/mcp/accept.ts';
import type { Actor } from '../../src/model/actions.ts';
import type { AskRecord } from '../../src/model/asks.ts';
import type { Row } from '../../src/ports/index.ts';
import { eventually } from '../support/eventually.ts';
import { scriptedAgent } from '../support/gateway/agents.ts';
import { openMcpGateway } from '../support/mcp/gateway.ts';
import { echo, openUpstream } from '../support/mcp/upstream.ts';
import { aDirectory, typed } from '../support/process/cli.ts';

const person = (id: string): Actor => ({ id, kind: 'person', scopes: ['*'], interactive: true });
const [ANN, BEN, DUTY] = [person('ann'), person('ben'), person('duty')];
/** Its results taint nothing, so that only the grant decides whether a second call is asked about. */
const closed = { ...echo, definition: { annotations: { openWorldHint: false } } };
const RULES = '- { id: ask, when: { tool: echo }, then: ask }\n- { id: all, when: {}, then: allow }';

/** Any principal may give work to the same agent, which calls `echo` once. */
async function openWork() {
  const data = await aDirectory();
  const upstream = await openUpstream({ tools: { echo: closed } });
  const agent = scriptedAgent(async (sink) => {
    await sink.act({ kind: 'tool', tool: 'echo', server: 'u', tool_call_id: 'c', arguments: { text: 'x' } });
    return undefined;
  });
  const open = () =>
    openMcpGateway({
      upstreams: { u: { url: upstream.url, trusted: true } },
      rules: RULES,
      agents: [agent],
      dir: data,
    });
  let gateway = await open();
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const bridge = () => gateway.runtime.bridge;
  const [workspace] = (await bridge().list<Row>(ANN, { object: 'workspace' })).data;
  const asks = async (task: string) =>
    (await bridge().list<AskRecord & Row>(DUTY, { object: 'ask', where: { task_id: task, state: 'open' } })).data;
  const session = async (actor: Actor) => {
    const body = { workspace_id: workspace!.id };
    return (await bridge().submit({ kind: 'session.create', actor, body })).resource.id;
  };
  const begin = async (actor: Actor, at: string) => {
    const input = { role: 'user', parts: [{ type: 'text' as const, text: 'go', visibility: 'public' as const }] };
    const body = { session_id: at, agent: 'agent', input };
    return (await bridge().submit({ kind: 'task.submit', actor, body })).resource.id;
  };
  /** The open question of the task; undefined when it ended without one. */
  const question = async (task: string): Promise<AskRecord | undefined> => {
    let ask: AskRecord | undefined;
    await eventually(async () => {
      [ask] = await asks(task);
      const { status } = await bridge().view<Row & { status: string }>(DUTY, 'task', task);
      return ask !== undefined || ['COMPLETED', 'FAILED'].includes(status);
    }, 'a question or the end');
    return ask;
  };
  const answer = (ask: AskRecord | undefined, actor: Actor, more: object) =>
    bridge().submit({ kind: 'ask.answer', actor, body: { ask_id: ask!.id, ...more } });
  return {
    upstream,
    data,
    bridge,
    session,
    begin,
    question,
    answer,
    /** Work for this principal: was a person asked? */
    async asked(actor: Actor, at: string): Promise<boolean> {
      const ask = await question(await begin(actor, at));
      if (ask) await answer(ask, DUTY, { approved: false });
      return ask !== undefined;
    },
    async restart() {
      await gateway.close();
      gateway = await open();
    },
  };
}

test.each(['session', '2h'])(
  'for %s: what an agent may do for one principal it may not do for another',
  async (wanted) => {
    const at = await openWork();
    const [hers, his] = [await at.session(ANN), await at.session(BEN)];
    const first = await at.begin(ANN, hers);
    await at.answer(await at.question(first), DUTY, { approved: true, for: wanted });
    expect(await at.asked(ANN, hers)).toBe(false);
    expect(await at.asked(BEN, his)).toBe(true);
    // In the very session, too.
    expect(await at.asked(BEN, hers)).toBe(true);
    await at.restart();
    expect(await at.asked(ANN, hers)).toBe(false);
    expect(await at.asked(BEN, hers)).toBe(true);
    // She has another session for which nobody has approved anything.
    expect(await at.asked(ANN, await at.session(ANN))).toBe(wanted === 'session');
  },
);

test('an accepted change of a tool is a tool that nobody has approved yet', async () => {
  const at = await openWork();
  const hers = await at.session(ANN);
  await at.answer(await at.question(await at.begin(ANN, hers)), DUTY, { approved: true, for: 'session' });
  expect(await at.asked(ANN, hers)).toBe(false);
  const calls = at.upstream.count('tools/call');

  at.upstream.tools.echo = { ...closed, definition: { ...closed.definition, description: 'sends it to others' } };
  await at.restart();
  expect(await at.asked(ANN, hers)).toBe(false);
  expect(at.upstream.count('tools/call')).toBe(calls);
  expect((await typed(() => accept('u', ['echo'], { data: at.data, yes: true }))).code).toBe(0);
  expect(await at.asked(ANN, hers)).toBe(true);
  expect(at.upstream.count('tools/call')).toBe(calls);

  at.upstream.tools.echo = closed;
  await at.restart();
  await at.asked(ANN, hers);
  expect(at.upstream.count('tools/call')).toBe(calls);
  expect((await typed(() => accept('u', ['echo'], { data: at.data, yes: true }))).code).toBe(0);
  // Again what the yes was about.
  expect(await at.asked(ANN, hers)).toBe(false);
  expect(at.upstream.count('tools/call')).toBe(calls + 1);
});

test('neither the agent, nor its words, nor a caller without the scope makes a grant', async () => {
  const at = await openWork();
  const hers = await at.session(ANN);
  const task = await at.begin(ANN, hers);
  const ask = await at.question(task);
  const agent: Actor = { id: 'agent:agent', kind: 'agent', scopes: ['*'], on_behalf_of: 'ann' };
  const weak: Actor = { id: 'eve', kind: 'service', scopes: ['tasks:*', 'sessions:*'] };
  for (const actor of [agent, { ...agent, kind: 'service' as const }, weak]) {
    await expect(at.answer(ask, actor, { approved: true, for: 'session' })).rejects.toThrow();
  }
  const rules = await at.bridge().list<Row>(DUTY, { object: 'permission_rule' });
  expect(rules.data).toEqual([]);
  expect(at.upstream.count('tools/call')).toBe(0);
  await at.answer(ask, DUTY, { approved: false });
  expect(await at.asked(ANN, hers)).toBe(true);
});
