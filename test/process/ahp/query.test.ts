/** A free question of an agent that a rule leaves to a person: the command that the list of approvals prints answers it. */
import { expect, onTestFinished, test } from 'vitest';
import { answer, listApprovals } from '../../../src/cli/commands/approvals/approvals.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { openAgent } from '../../support/ahp/gateway.ts';
import { aDirectory, typed } from '../../support/process/cli.ts';

const PATIENT = { timeout: 15_000 };
const RULES = '- { id: ask, when: { kind: query }, then: ask, say: a person knows }';

test('a query is answered with a text by the command that is printed for it, and not by a bare yes', async () => {
  const dir = await aDirectory();
  const agent = await openAgent({ dir, clock: systemClock, rules: RULES, config: { timeout_ms: 60_000 } });
  const payload = { question: 'Which branch?' };
  const asked = agent.request('ahp/query', { session_id: 's', agent_id: 'a', query_type: 'which_branch', payload });
  await expect.poll(async () => (await agent.task()).status, PATIENT).toBe('INPUT_REQUIRED');
  const { out } = await typed(() => listApprovals({ data: dir }));
  const [, id = ''] = /approve (ask_\w+) --value "answer"$/m.exec(out) ?? [];
  expect(id).toMatch(/^ask_/);
  expect(out).toContain('Which branch?');

  const bare = await typed(() => answer(id, true, undefined, { data: dir }));
  expect([bare.code, bare.out]).toEqual([2, '']);
  const answered = await typed(() => answer(id, true, undefined, { data: dir, value: 'main' }));
  expect([answered.code, answered.out]).toEqual([0, `Answered: ${id}\n`]);
  expect(await asked).toEqual({ answer: 'main', reason: 'a person knows' });
});

test('a value is no answer to a question about an act', async () => {
  const dir = await aDirectory();
  const rules = '- { id: ask, when: { kind: tool }, then: ask, say: a person decides }';
  const agent = await openAgent({ dir, clock: systemClock, rules, config: { timeout_ms: 60_000 } });
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const caller = { ...agent.caller, gone: left.signal };
  const asked = agent.ask('pre_action', { tool_name: 'bash', arguments: { command: 'ls' } }, {}, caller);
  await expect.poll(async () => (await agent.task()).status, PATIENT).toBe('AUTH_REQUIRED');
  const [ask] = await agent.t.asks((await agent.task()).id);
  const valued = await typed(() => answer(ask!.id, true, undefined, { data: dir, value: 'yes' }));
  expect([valued.code, valued.err]).toEqual([2, expect.stringContaining('wants a yes or a no, not a value')]);
  await typed(() => answer(ask!.id, true, undefined, { data: dir }));
  expect(await asked).toMatchObject({ decision: 'allow' });
});
