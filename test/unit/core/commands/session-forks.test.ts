/** Conversations forked, cut, shortened and branched, while the log keeps everything. */
import { describe, expect, test } from 'vitest';
import type { Session } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { all, freshDir, openTestGateway, REAL_TIME } from '../../../support/gateway/test-gateway.ts';
import { append, range, sessionEvents, wordsOf } from '../../../support/tasks/conversation.ts';
import { patient, scripted, text } from '../../../support/tasks/script.ts';

describe('fork', () => {
  test('at the tip, at an event, and of a fork', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session({ metadata: { about: 'forks' } });
    await append(gateway, session, 'a', 'b');
    const mark = (await sessionEvents(gateway, session)).at(-1)!;
    await append(gateway, session, 'c');

    const tip = (await gateway.send('session.fork', { session_id: session })).resource as Session & Row;
    expect(tip).toMatchObject({ parent_session_id: session, root_session_id: session, state: 'IDLE' });
    expect(tip.metadata).toEqual({ about: 'forks' });
    expect(wordsOf(await gateway.messages(tip.id))).toEqual(['a', 'b', 'c']);

    const early = await gateway.send('session.fork', { session_id: session, at_event_id: mark.id });
    expect(wordsOf(await gateway.messages(early.resource.id))).toEqual(['a', 'b']);

    await append(gateway, tip.id, 'd');
    const again = (await gateway.send('session.fork', { session_id: tip.id })).resource as Session & Row;
    expect(again).toMatchObject({ parent_session_id: tip.id, root_session_id: session });
    expect(wordsOf(await gateway.messages(again.id))).toEqual(['a', 'b', 'c', 'd']);
    // Nothing said in a fork is said in its parent, or the other way round.
    await append(gateway, session, 'e');
    expect(wordsOf(await gateway.messages(session))).toEqual(['a', 'b', 'c', 'e']);
    expect(wordsOf(await gateway.messages(tip.id))).toEqual(['a', 'b', 'c', 'd']);

    const copies = await gateway.messages(tip.id);
    const originals = await gateway.messages(session);
    expect(copies.slice(0, 3).map(({ metadata }) => metadata.copied_from)).toEqual(
      originals.slice(0, 3).map(({ id }) => id),
    );
    expect(copies.slice(0, 3).map(({ created_at }) => created_at)).toEqual(
      originals.slice(0, 3).map(({ created_at }) => created_at),
    );
    const reported = (await sessionEvents(gateway, session)).filter(({ event }) => event === 'session.thread_forked');
    expect(reported.map(({ payload }) => payload)).toEqual([
      { session_id: tip.id, branch_id: tip.branch_id, at_event_id: null, messages: 3 },
      {
        session_id: early.resource.id,
        branch_id: (early.resource as Session & Row).branch_id,
        at_event_id: mark.id,
        messages: 2,
      },
    ]);
  });

  test('keeps what a cut or a replay of the source did, and reaches back behind a later cut', async () => {
    const agent = scripted('one', async ({ sink }) => sink.emit(text('answer')));
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
    const session = await gateway.session();
    const { id } = await gateway.submit(session);
    await gateway.until(id);
    const whole = (await sessionEvents(gateway, session)).at(-1)!;
    await gateway.send('session.truncate', { session_id: session, keep_first: 1 });
    await gateway.send('task.replay', { task_id: id });
    await gateway.runtime.idle();
    const mark = (await sessionEvents(gateway, session)).at(-1)!;
    const now = await gateway.send('session.fork', { session_id: session });
    const marked = await gateway.send('session.fork', { session_id: session, at_event_id: mark.id });
    const before = await gateway.send('session.fork', { session_id: session, at_event_id: whole.id });
    expect(wordsOf(await gateway.messages(now.resource.id))).toEqual(['please']);
    expect(wordsOf(await gateway.messages(marked.resource.id))).toEqual(['please']);
    expect(wordsOf(await gateway.messages(before.resource.id))).toEqual(['please', 'answer']);
  });

  test('a closed session can be forked; an event of another session is no place to fork at', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const [one, two] = [await gateway.session(), await gateway.session()];
    await append(gateway, one, 'a');
    const theirs = (await sessionEvents(gateway, two)).at(-1)!;
    const at = (at_event_id: string) => refusalOf(gateway.send('session.fork', { session_id: one, at_event_id }));
    expect(await at(theirs.id)).toMatchObject({ kind: 'not_found' });
    expect(await at('evt_0000000000009999')).toMatchObject({ kind: 'not_found' });
    await gateway.send('session.close', { session_id: one });
    const fork = await gateway.send('session.fork', { session_id: one });
    await append(gateway, fork.resource.id, 'b');
    expect(wordsOf(await gateway.messages(fork.resource.id))).toEqual(['a', 'b']);
  });

  test('what is no longer kept cannot be forked at; what is there still can', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    await append(gateway, session, 'a', 'b');
    const [, , mark] = await sessionEvents(gateway, session);
    await gateway.runtime.store.retain('9999-01-01T00:00:00.000Z');
    await append(gateway, session, 'c');
    const kept = (await all(gateway.runtime.store.read({ stream: { of: 'all' } }))).at(-1)!;
    for (const at_event_id of [mark!.id, kept.id]) {
      const fault = await refusalOf(gateway.send('session.fork', { session_id: session, at_event_id }));
      expect(['not_found', 'cursor_expired']).toContain(fault.kind);
    }
    const fork = await gateway.send('session.fork', { session_id: session });
    expect(wordsOf(await gateway.messages(fork.resource.id))).toEqual(['a', 'b', 'c']);
  });
});

describe('truncate', () => {
  test('keeps the first turns, tells what went, and leaves the log alone', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    const ids = await append(gateway, session, 'a', 'b', 'c', 'd');
    const before = await sessionEvents(gateway, session);
    const { resource, details } = await gateway.send('session.truncate', {
      session_id: session,
      keep_first: 2,
      reason: 'wrong turn',
    });
    expect(details).toEqual({ kept_turn_count: 2, removed_turn_count: 2, new_tip_turn_id: ids[1] });
    expect((resource as Session & Row).transcript).toMatchObject({ message_count: 2, tip_message_id: ids[1] });
    expect(wordsOf(await gateway.messages(session))).toEqual(['a', 'b']);
    expect(await refusalOf(gateway.view('message', ids[3]!))).toMatchObject({ kind: 'not_found' });
    const after = await sessionEvents(gateway, session);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.at(-1)).toMatchObject({
      event: 'session.truncated',
      actor: 'ana',
      payload: { kept_turn_count: 2, removed: [ids[2], ids[3]], reason: 'wrong turn' },
    });
    const more = await append(gateway, session, 'e');
    expect((await gateway.view('session', session)).transcript).toMatchObject({
      message_count: 3,
      tip_message_id: more[0],
    });
  });

  test('to nothing, and to more than there is', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    const ids = await append(gateway, session, 'a', 'b');
    const cut = async (keep_first: number) =>
      (await gateway.send('session.truncate', { session_id: session, keep_first })).details;
    expect(await cut(9)).toEqual({ kept_turn_count: 2, removed_turn_count: 0, new_tip_turn_id: ids[1] });
    expect(await cut(0)).toEqual({ kept_turn_count: 0, removed_turn_count: 2, new_tip_turn_id: null });
    expect(await cut(0)).toEqual({ kept_turn_count: 0, removed_turn_count: 0, new_tip_turn_id: null });
  });

  test('stops the work that goes on, and a repeat of it does not stop what came after', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', patient)] });
    const session = await gateway.session();
    const [running, queued] = [await gateway.submit(session), await gateway.submit(session)];
    const cut = () =>
      gateway.send('session.truncate', { session_id: session, keep_first: 0 }, { idempotency: { key: 'once' } });
    const first = await cut();
    for (const { id } of [running, queued]) {
      expect(await gateway.task(id)).toMatchObject({ status: 'CANCELED' });
      expect((await gateway.events(id)).at(-1)!.payload.reason).toBe('the session was cut back');
    }
    expect((await gateway.view('session', session)).state).toBe('IDLE');
    const later = await gateway.submit(session);
    const again = await cut();
    expect(again).toMatchObject({ repeated: true, details: first.details });
    expect((await gateway.task(later.id)).status).toBe('WORKING');
    expect(wordsOf(await gateway.messages(session))).toEqual(['please']);
  });

  test('with messages arriving meanwhile: each is kept whole or gone whole, and the count is right', async () => {
    const dir = await freshDir();
    const [one, two] = [await openTestGateway({ ...REAL_TIME, dir }), await openTestGateway({ ...REAL_TIME, dir })];
    const session = await one.session();
    for (let round = 0; round < 8; round += 1) {
      const cuts = [one, two].map((gateway) =>
        gateway.send('session.truncate', { session_id: session, keep_first: round }),
      );
      const writes = range(0, 10).map((n) => append(Number(n) % 2 ? one : two, session, `${round}.${n}`));
      await Promise.all([...cuts, ...writes]);
      const listed = await two.messages(session);
      const { transcript } = await two.view('session', session);
      expect(transcript).toMatchObject({
        message_count: listed.length,
        tip_message_id: listed.at(-1)?.id ?? null,
      });
    }
  });
});

describe('compaction', () => {
  test('marks how far the summary reaches and removes nothing', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    const ids = await append(gateway, session, 'a', 'b', 'c');
    await gateway.send('session.compact', {
      session_id: session,
      summary: 'they said a and b',
      through_message_id: ids[1]!,
    });
    expect((await gateway.view('session', session)).transcript).toMatchObject({
      compacted: true,
      compacted_through: ids[1],
      message_count: 3,
    });
    expect(wordsOf(await gateway.messages(session))).toEqual(['a', 'b', 'c']);
    expect((await sessionEvents(gateway, session)).at(-1)).toMatchObject({
      event: 'session.compacted',
      payload: { summary: 'they said a and b', through_message_id: ids[1] },
    });
    const [outsider] = await append(gateway, await gateway.session(), 'x');
    const elsewhere = { session_id: session, summary: '', through_message_id: outsider! };
    expect(await refusalOf(gateway.send('session.compact', elsewhere))).toMatchObject({ kind: 'not_found' });
  });
});

describe('branches', () => {
  test('are made in a session and end once', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    const { resource } = await gateway.send('branch.create', {
      session_id: session,
      kind: 'session',
      base_ref: 'main',
    });
    expect(resource).toMatchObject({ object: 'branch', base_ref: 'main', created_by: 'ana', merged_into: null });
    const merged = await gateway.send('branch.end', { branch_id: resource.id, as: 'merged', merged_into: 'release' });
    expect(merged.resource).toMatchObject({ merged_into: 'release' });
    expect(await refusalOf(gateway.send('branch.end', { branch_id: resource.id, as: 'abandoned' }))).toMatchObject({
      kind: 'conflict',
    });
    const side = await gateway.send('branch.create', {
      session_id: session,
      kind: 'sandbox',
      base_ref: 'main',
      parent_branch_id: resource.id,
    });
    await gateway.send('branch.end', { branch_id: side.resource.id, as: 'abandoned' });
    const reported = (await sessionEvents(gateway, session)).filter(({ event }) => event.startsWith('branch.'));
    expect(reported.map(({ event }) => event)).toEqual([
      'branch.created',
      'branch.merged',
      'branch.created',
      'branch.abandoned',
    ]);
    expect(await gateway.view('branch', side.resource.id)).toMatchObject({ parent_branch_id: resource.id });
  });
});
