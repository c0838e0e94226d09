/** Branches: a fork is one, its work carries it, and it ends once, by coming back or by being given up. */
import { describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { Branch, Session, Task } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { openTestGateway, REAL_TIME, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { append, sessionEvents, wordsOf } from '../../../support/tasks/conversation.ts';
import { patient, scripted } from '../../../support/tasks/script.ts';

async function forkOf(gateway: TestGateway, session: string, more: object = {}): Promise<Session & Row> {
  return (await gateway.send('session.fork', { session_id: session, ...more })).resource as Session & Row;
}
const merge = (gateway: TestGateway, { branch_id }: Session, more: object = {}) =>
  gateway.send('branch.end', { branch_id: branch_id as string, as: 'merged' }, more);

describe('a fork', () => {
  test('is a branch of its own, or the one it names, once', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    await append(gateway, session, 'a');
    const tip = (await sessionEvents(gateway, session)).at(-1)!;
    const fork = await forkOf(gateway, session);
    expect(await gateway.view<Branch & Row>('branch', fork.branch_id as string)).toMatchObject({
      kind: 'session',
      base_ref: `${session}@${tip.id}`,
      session_id: fork.id,
      parent_branch_id: null,
      created_by: 'ana',
    });
    const made = await gateway.send('branch.create', { session_id: session, kind: 'task', base_ref: 'main' });
    const named = await forkOf(gateway, session, { branch_id: made.resource.id });
    expect(named.branch_id).toBe(made.resource.id);
    expect(await refusalOf(forkOf(gateway, session, { branch_id: made.resource.id }))).toMatchObject({
      kind: 'conflict',
    });
    const elsewhere = await gateway.session();
    expect(await refusalOf(forkOf(gateway, elsewhere, { branch_id: made.resource.id }))).toMatchObject({
      kind: 'not_found',
    });
    await append(gateway, named.id, 'b');
    await merge(gateway, named);
    expect(wordsOf(await gateway.messages(session))).toEqual(['a', 'b']);
  });

  test('gives its branch to its work and to the receipts of it; a replay keeps it', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', async () => {})] });
    const session = await gateway.session();
    const fork = await forkOf(gateway, session);
    const { id } = await gateway.submit(fork.id);
    await gateway.until(id);
    expect((await gateway.task(id)).branch_id).toBe(fork.branch_id);
    expect((await gateway.receipt(id)).identifiers.branch_id).toBe(fork.branch_id);
    const outside = (await gateway.send('task.submit', { session_id: fork.id, input: {}, agent: 'none' }))
      .resource as Task & Row;
    expect(outside.branch_id).toBe(fork.branch_id);
    expect((await gateway.submit(session)).branch_id).toBe(null);
    const replay = (await gateway.send('task.replay', { task_id: id })).resource as Task & Row;
    expect(replay.branch_id).toBe(fork.branch_id);
    await gateway.runtime.idle();
  });
});

describe('a merge', () => {
  test('brings back what was said since, through several forks, each word once', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    await append(gateway, session, 'a');
    const one = await forkOf(gateway, session);
    await append(gateway, one.id, 'b');
    const two = await forkOf(gateway, one.id);
    await append(gateway, two.id, 'c');
    await append(gateway, session, 'meanwhile');
    await merge(gateway, two);
    await merge(gateway, one);
    expect(wordsOf(await gateway.messages(one.id))).toEqual(['a', 'b', 'c']);
    expect(wordsOf(await gateway.messages(session))).toEqual(['a', 'meanwhile', 'b', 'c']);
    const reported = (await sessionEvents(gateway, session)).filter(({ event }) => event === 'session.thread_merged');
    expect(reported.map(({ payload }) => payload)).toEqual([
      { session_id: one.id, branch_id: one.branch_id, messages: 2 },
    ]);
    expect(await gateway.view('branch', one.branch_id as string)).toMatchObject({ merged_into: session });
  });

  test('waits for no work: what runs on the fork has to end first, and none begins afterwards', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', patient)] });
    const session = await gateway.session();
    const fork = await forkOf(gateway, session);
    const { id } = await gateway.submit(fork.id);
    expect(await refusalOf(merge(gateway, fork))).toMatchObject({ kind: 'conflict' });
    await gateway.send('task.cancel', { task_id: id });
    await gateway.until(id);
    await merge(gateway, fork);
    expect(await refusalOf(gateway.submit(fork.id))).toMatchObject({ kind: 'conflict' });
    expect(
      await refusalOf(
        gateway.send('task.submit', { session_id: session, input: {}, branch_id: fork.branch_id as string }),
      ),
    ).toMatchObject({
      kind: 'conflict',
    });
  });

  test('happens once, also when it is asked for twice at the same moment, or again with its key', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    const fork = await forkOf(gateway, session);
    await append(gateway, fork.id, 'a');
    const ends = await Promise.allSettled([1, 2, 3].map(() => merge(gateway, fork)));
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(wordsOf(await gateway.messages(session))).toEqual(['a']);
    const other = await forkOf(gateway, session);
    await append(gateway, other.id, 'b');
    const more = { idempotency: { key: 'k' } };
    expect([(await merge(gateway, other, more)).repeated, (await merge(gateway, other, more)).repeated]).toEqual([
      false,
      true,
    ]);
    expect(wordsOf(await gateway.messages(session))).toEqual(['a', 'b']);
  });

  test('of words that come in while it is written loses none of them', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    const fork = await forkOf(gateway, session);
    await append(gateway, fork.id, 'first');
    await Promise.all([
      merge(gateway, fork),
      ...['x', 'y', 'z'].map((word) => append(gateway, fork.id, word).catch(() => {})),
    ]);
    const [reported] = (await sessionEvents(gateway, session)).filter(({ event }) => event === 'session.thread_merged');
    const merged = wordsOf(await gateway.messages(session));
    expect(reported?.payload.messages).toBe(merged.length);
    expect(wordsOf(await gateway.messages(fork.id)).slice(0, merged.length)).toEqual(merged);
  });

  test('into a session that is closed, or that its asker does not see, is refused and changes nothing', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    const fork = await forkOf(gateway, session);
    const other: Actor = { id: 'x', kind: 'service', scopes: ['sessions:read', 'sessions:write'] };
    expect(await refusalOf(merge(gateway, fork, { actor: other }))).toMatchObject({ kind: 'not_found' });
    await gateway.send('session.close', { session_id: session });
    expect(await refusalOf(merge(gateway, fork))).toMatchObject({ kind: 'conflict' });
    expect((await gateway.view<Branch & Row>('branch', fork.branch_id as string)).metadata).toEqual({});
    await gateway.send('branch.end', { branch_id: fork.branch_id as string, as: 'abandoned' }, { actor: ana });
  });
});

test('a change of a branch cannot end it, or say whose fork it is', async () => {
  const gateway = await openTestGateway(REAL_TIME);
  const fork = await forkOf(gateway, await gateway.session());
  const metadata = { ended_as: 'merged', forked_session_id: 'session_x', a: 1 };
  const { resource } = await gateway.send('branch.update', { branch_id: fork.branch_id as string, metadata });
  expect((resource as Branch & Row).metadata).toEqual({ a: 1 });
  const made = await gateway.send('branch.create', { session_id: fork.id, kind: 'task', base_ref: 'm', metadata });
  expect((made.resource as Branch & Row).metadata).toEqual({ a: 1 });
  await merge(gateway, fork, {});
});
