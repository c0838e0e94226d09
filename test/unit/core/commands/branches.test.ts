/** Branches: a fork is one, its work carries it, and it ends once, by coming back or by being given up. */
import { describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { Branch, Session, Task } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { append, sessionEvents, wordsOf } from '../../../support/tasks/conversation.ts';
import { ana, faultOf, type Life, openLife } from '../../../support/tasks/life.ts';
import { patient, scripted } from '../../../support/tasks/script.ts';

async function forkOf(life: Life, session: string, more: object = {}): Promise<Session & Row> {
  return (await life.do('session.fork', { session_id: session, ...more })).resource as Session & Row;
}
const merge = (life: Life, { branch_id }: Session, more: object = {}) =>
  life.do('branch.end', { branch_id: branch_id as string, as: 'merged' }, more);

describe('a fork', () => {
  test('is a branch of its own, or the one it names, once', async () => {
    const life = await openLife();
    const session = await life.session();
    await append(life, session, 'a');
    const tip = (await sessionEvents(life, session)).at(-1)!;
    const fork = await forkOf(life, session);
    expect(await life.view<Branch & Row>('branch', fork.branch_id as string)).toMatchObject({
      kind: 'session',
      base_ref: `${session}@${tip.id}`,
      session_id: fork.id,
      parent_branch_id: null,
      created_by: 'ana',
    });
    const made = await life.do('branch.create', { session_id: session, kind: 'task', base_ref: 'main' });
    const named = await forkOf(life, session, { branch_id: made.resource.id });
    expect(named.branch_id).toBe(made.resource.id);
    expect(await faultOf(forkOf(life, session, { branch_id: made.resource.id }))).toMatchObject({ kind: 'conflict' });
    const elsewhere = await life.session();
    expect(await faultOf(forkOf(life, elsewhere, { branch_id: made.resource.id }))).toMatchObject({
      kind: 'not_found',
    });
    await append(life, named.id, 'b');
    await merge(life, named);
    expect(wordsOf(await life.messages(session))).toEqual(['a', 'b']);
  });

  test('gives its branch to its work and to the receipts of it; a replay keeps it', async () => {
    const life = await openLife({ backends: [scripted('one', async () => {})] });
    const session = await life.session();
    const fork = await forkOf(life, session);
    const { id } = await life.submit(fork.id);
    await life.ended(id);
    expect((await life.task(id)).branch_id).toBe(fork.branch_id);
    expect((await life.receipt(id)).identifiers.branch_id).toBe(fork.branch_id);
    const outside = (await life.do('task.submit', { session_id: fork.id, input: {}, agent: 'none' })).resource as Task &
      Row;
    expect(outside.branch_id).toBe(fork.branch_id);
    expect((await life.submit(session)).branch_id).toBe(null);
    const replay = (await life.do('task.replay', { task_id: id })).resource as Task & Row;
    expect(replay.branch_id).toBe(fork.branch_id);
    await life.runtime.idle();
  });
});

describe('a merge', () => {
  test('brings back what was said since, through several forks, each word once', async () => {
    const life = await openLife();
    const session = await life.session();
    await append(life, session, 'a');
    const one = await forkOf(life, session);
    await append(life, one.id, 'b');
    const two = await forkOf(life, one.id);
    await append(life, two.id, 'c');
    await append(life, session, 'meanwhile');
    await merge(life, two);
    await merge(life, one);
    expect(wordsOf(await life.messages(one.id))).toEqual(['a', 'b', 'c']);
    expect(wordsOf(await life.messages(session))).toEqual(['a', 'meanwhile', 'b', 'c']);
    const reported = (await sessionEvents(life, session)).filter(({ event }) => event === 'session.thread_merged');
    expect(reported.map(({ payload }) => payload)).toEqual([
      { session_id: one.id, branch_id: one.branch_id, messages: 2 },
    ]);
    expect(await life.view('branch', one.branch_id as string)).toMatchObject({ merged_into: session });
  });

  test('waits for no work: what runs on the fork has to end first, and none begins afterwards', async () => {
    const life = await openLife({ backends: [scripted('one', patient)] });
    const session = await life.session();
    const fork = await forkOf(life, session);
    const { id } = await life.submit(fork.id);
    expect(await faultOf(merge(life, fork))).toMatchObject({ kind: 'conflict' });
    await life.do('task.cancel', { task_id: id });
    await life.ended(id);
    await merge(life, fork);
    expect(await faultOf(life.submit(fork.id))).toMatchObject({ kind: 'conflict' });
    expect(
      await faultOf(life.do('task.submit', { session_id: session, input: {}, branch_id: fork.branch_id as string })),
    ).toMatchObject({
      kind: 'conflict',
    });
  });

  test('happens once, also when it is asked for twice at the same moment, or again with its key', async () => {
    const life = await openLife();
    const session = await life.session();
    const fork = await forkOf(life, session);
    await append(life, fork.id, 'a');
    const ends = await Promise.allSettled([1, 2, 3].map(() => merge(life, fork)));
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(wordsOf(await life.messages(session))).toEqual(['a']);
    const other = await forkOf(life, session);
    await append(life, other.id, 'b');
    const more = { idempotency: { key: 'k' } };
    expect([(await merge(life, other, more)).repeated, (await merge(life, other, more)).repeated]).toEqual([
      false,
      true,
    ]);
    expect(wordsOf(await life.messages(session))).toEqual(['a', 'b']);
  });

  test('of words that come in while it is written loses none of them', async () => {
    const life = await openLife();
    const session = await life.session();
    const fork = await forkOf(life, session);
    await append(life, fork.id, 'first');
    await Promise.all([
      merge(life, fork),
      ...['x', 'y', 'z'].map((word) => append(life, fork.id, word).catch(() => {})),
    ]);
    const [reported] = (await sessionEvents(life, session)).filter(({ event }) => event === 'session.thread_merged');
    const merged = wordsOf(await life.messages(session));
    expect(reported?.payload.messages).toBe(merged.length);
    expect(wordsOf(await life.messages(fork.id)).slice(0, merged.length)).toEqual(merged);
  });

  test('into a session that is closed, or that its asker does not see, is refused and changes nothing', async () => {
    const life = await openLife();
    const session = await life.session();
    const fork = await forkOf(life, session);
    const other: Actor = { id: 'x', kind: 'service', scopes: ['sessions:read', 'sessions:write'] };
    expect(await faultOf(merge(life, fork, { actor: other }))).toMatchObject({ kind: 'not_found' });
    await life.do('session.close', { session_id: session });
    expect(await faultOf(merge(life, fork))).toMatchObject({ kind: 'conflict' });
    expect((await life.view<Branch & Row>('branch', fork.branch_id as string)).metadata).toEqual({});
    await life.do('branch.end', { branch_id: fork.branch_id as string, as: 'abandoned' }, { actor: ana });
  });
});

test('a change of a branch cannot end it, or say whose fork it is', async () => {
  const life = await openLife();
  const fork = await forkOf(life, await life.session());
  const metadata = { ended_as: 'merged', forked_session_id: 'session_x', a: 1 };
  const { resource } = await life.do('branch.update', { branch_id: fork.branch_id as string, metadata });
  expect((resource as Branch & Row).metadata).toEqual({ a: 1 });
  const made = await life.do('branch.create', { session_id: fork.id, kind: 'task', base_ref: 'm', metadata });
  expect((made.resource as Branch & Row).metadata).toEqual({ a: 1 });
  await merge(life, fork, {});
});
