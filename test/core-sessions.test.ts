/** Conversations: their order, their forks and cuts, what stays out of sight, and when they are over. */
import { describe, expect, test } from 'vitest';
import type { Artifact, Message, Session } from '../src/model/resources.ts';
import type { Row } from '../src/ports.ts';
import { all, ana, faultOf, freshDir, type Life, openLife, said, until } from './life/house.ts';
import { latch, patient, scripted, stopped, text } from './life/script.ts';

const wordsOf = (messages: readonly Message[]) =>
  messages.map(({ parts }) => (parts[0] as { text?: string } | undefined)?.text);

async function append(life: Life, session: string, ...words: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const word of words) {
    ids.push((await life.do('message.append', { session_id: session, message: said(word) })).resource.id);
  }
  return ids;
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => String(from + at));

async function sessionEvents(life: Life, session: string) {
  return await all(life.house.store.read({ stream: { of: 'session', id: session } }));
}

describe('order', () => {
  test('messages stand in the order of the log, whatever they are called and however fast they come', async () => {
    const agent = scripted('one', async ({ sink }) => {
      // Names that sort backwards, times that are no help, and several within one millisecond.
      for (let n = 0; n < 150; n += 1) {
        const claimed = ['2020-01-01T00:00:00.000Z', '2199-01-01T00:00:00+02:00', undefined][n % 3];
        await sink.emit(text(`a${n}`, { id: `msg-${999 - n}`, ...(claimed && { created_at: claimed }) }));
      }
    });
    const life = await openLife({ backends: [agent] });
    const session = await life.session({ initial_messages: [said('first'), said('second')] });
    const { id } = await life.submit(session);
    await Promise.all(range(0, 40).map((word) => append(life, session, `p${word}`)));
    await life.ended(id);
    const inLog = (await sessionEvents(life, session))
      .filter(({ event }) => event === 'user.message' || event === 'agent.message')
      .map(({ payload }) => (payload.message as unknown as Message).id);
    const listed = await life.messages(session);
    expect(listed).toHaveLength(193);
    expect(listed.map((message) => message.id)).toEqual(inLog);
    expect(wordsOf(listed).slice(0, 3)).toEqual(['first', 'second', 'please']);
    expect(wordsOf(listed).filter((word) => word?.startsWith('a'))).toEqual(range(0, 150).map((n) => `a${n}`));
    const times = listed.map(({ created_at }) => created_at);
    expect(times).toEqual([...new Set(times)].sort());
    const view = await life.view('session', session);
    expect(view.transcript).toMatchObject({ message_count: 193, turn_count: 193, tip_message_id: inLog.at(-1) });
  });

  test('a message said again under its id is the same turn, changed', async () => {
    const agent = scripted('one', async ({ sink }) => {
      await sink.emit(text('draft', { id: 'm' }));
      await sink.emit(text('other'));
      await sink.emit(text('final', { id: 'm' }));
    });
    const life = await openLife({ backends: [agent] });
    const session = await life.session();
    await life.ended((await life.submit(session)).id);
    expect(wordsOf(await life.messages(session))).toEqual(['please', 'final', 'other']);
    expect((await life.view('session', session)).transcript).toMatchObject({ message_count: 3 });
    const cut = await life.do('session.truncate', { session_id: session, keep_first: 2 });
    expect(cut.details).toMatchObject({ kept_turn_count: 2, removed_turn_count: 1, new_tip_turn_id: 'm' });
  });

  test('an agent reads the conversation as it stands', async () => {
    const read: (string | undefined)[] = [];
    const agent = scripted('one', async ({ work }) => {
      read.push(...wordsOf(await all(work.transcript())));
    });
    const life = await openLife({ backends: [agent] });
    const session = await life.session();
    const words = range(0, 230);
    await append(life, session, ...words);
    await life.do('session.truncate', { session_id: session, keep_first: 210 });
    await life.ended((await life.submit(session)).id);
    expect(read).toEqual([...words.slice(0, 210), 'please']);
  });
});

describe('state', () => {
  test('idle, active while a task is open, idle again, closed for good', async () => {
    const life = await openLife({ backends: [scripted('one', patient)] });
    const session = await life.session();
    const state = async () => (await life.view('session', session)).state;
    expect(await state()).toBe('IDLE');
    const running = await life.submit(session);
    const outside = await life.submit(session, { agent: 'none' });
    expect(await state()).toBe('ACTIVE');
    const listed = await life.house.bridge.list<Session & Row>(ana, { object: 'session' });
    expect(listed.data.map((row) => row.state)).toEqual(['ACTIVE']);
    const touched = await life.do('session.update', { session_id: session, summary: 'busy' });
    expect(touched.resource).toMatchObject({ state: 'ACTIVE', summary: 'busy' });
    await life.do('task.cancel', { task_id: running.id });
    expect(await state()).toBe('ACTIVE');
    await life.do('task.report', { task_id: outside.id, end: { state: 'FAILED' } });
    expect(await state()).toBe('IDLE');
    const { resource } = await life.do('session.close', { session_id: session });
    expect(resource).toMatchObject({ state: 'CLOSED' });
    expect(await state()).toBe('CLOSED');
  });

  test('the last event of the session is where a reader goes on from', async () => {
    const life = await openLife();
    const session = await life.session();
    await append(life, session, 'a');
    const { last_event_id } = await life.view('session', session);
    expect((await sessionEvents(life, session)).at(-1)!.id).toBe(last_event_id);
  });
});

describe('fork', () => {
  test('at the tip, at an event, and of a fork', async () => {
    const life = await openLife();
    const session = await life.session({ metadata: { about: 'forks' } });
    await append(life, session, 'a', 'b');
    const mark = (await sessionEvents(life, session)).at(-1)!;
    await append(life, session, 'c');

    const tip = (await life.do('session.fork', { session_id: session })).resource as Session & Row;
    expect(tip).toMatchObject({ parent_session_id: session, root_session_id: session, state: 'IDLE' });
    expect(tip.metadata).toEqual({ about: 'forks' });
    expect(wordsOf(await life.messages(tip.id))).toEqual(['a', 'b', 'c']);

    const early = await life.do('session.fork', { session_id: session, at_event_id: mark.id });
    expect(wordsOf(await life.messages(early.resource.id))).toEqual(['a', 'b']);

    await append(life, tip.id, 'd');
    const again = (await life.do('session.fork', { session_id: tip.id })).resource as Session & Row;
    expect(again).toMatchObject({ parent_session_id: tip.id, root_session_id: session });
    expect(wordsOf(await life.messages(again.id))).toEqual(['a', 'b', 'c', 'd']);
    // Nothing said in a fork is said in its parent, or the other way round.
    await append(life, session, 'e');
    expect(wordsOf(await life.messages(session))).toEqual(['a', 'b', 'c', 'e']);
    expect(wordsOf(await life.messages(tip.id))).toEqual(['a', 'b', 'c', 'd']);

    const copies = await life.messages(tip.id);
    const originals = await life.messages(session);
    expect(copies.slice(0, 3).map(({ metadata }) => metadata.copied_from)).toEqual(
      originals.slice(0, 3).map(({ id }) => id),
    );
    expect(copies.slice(0, 3).map(({ created_at }) => created_at)).toEqual(
      originals.slice(0, 3).map(({ created_at }) => created_at),
    );
    const told = (await sessionEvents(life, session)).filter(({ event }) => event === 'session.thread_forked');
    expect(told.map(({ payload }) => payload)).toEqual([
      { session_id: tip.id, at_event_id: null, messages: 3 },
      { session_id: early.resource.id, at_event_id: mark.id, messages: 2 },
    ]);
  });

  test('keeps what a cut or a replay of the source did, and reaches back behind a later cut', async () => {
    const agent = scripted('one', async ({ sink }) => sink.emit(text('answer')));
    const life = await openLife({ backends: [agent] });
    const session = await life.session();
    const { id } = await life.submit(session);
    await life.ended(id);
    const whole = (await sessionEvents(life, session)).at(-1)!;
    await life.do('session.truncate', { session_id: session, keep_first: 1 });
    await life.do('task.replay', { task_id: id });
    await life.house.idle();
    const mark = (await sessionEvents(life, session)).at(-1)!;
    const now = await life.do('session.fork', { session_id: session });
    const marked = await life.do('session.fork', { session_id: session, at_event_id: mark.id });
    const before = await life.do('session.fork', { session_id: session, at_event_id: whole.id });
    expect(wordsOf(await life.messages(now.resource.id))).toEqual(['please']);
    expect(wordsOf(await life.messages(marked.resource.id))).toEqual(['please']);
    expect(wordsOf(await life.messages(before.resource.id))).toEqual(['please', 'answer']);
  });

  test('a closed session can be forked; an event of another session is no place to fork at', async () => {
    const life = await openLife();
    const [one, two] = [await life.session(), await life.session()];
    await append(life, one, 'a');
    const theirs = (await sessionEvents(life, two)).at(-1)!;
    const at = (at_event_id: string) => faultOf(life.do('session.fork', { session_id: one, at_event_id }));
    expect(await at(theirs.id)).toMatchObject({ kind: 'not_found' });
    expect(await at('evt_0000000000009999')).toMatchObject({ kind: 'not_found' });
    await life.do('session.close', { session_id: one });
    const fork = await life.do('session.fork', { session_id: one });
    await append(life, fork.resource.id, 'b');
    expect(wordsOf(await life.messages(fork.resource.id))).toEqual(['a', 'b']);
  });

  test('what is no longer kept cannot be forked at; what is there still can', async () => {
    const life = await openLife();
    const session = await life.session();
    await append(life, session, 'a', 'b');
    const [, , mark] = await sessionEvents(life, session);
    await life.house.store.retain('9999-01-01T00:00:00.000Z');
    await append(life, session, 'c');
    const kept = (await all(life.house.store.read({ stream: { of: 'all' } }))).at(-1)!;
    for (const at_event_id of [mark!.id, kept.id]) {
      const fault = await faultOf(life.do('session.fork', { session_id: session, at_event_id }));
      expect(['not_found', 'cursor_expired']).toContain(fault.kind);
    }
    const fork = await life.do('session.fork', { session_id: session });
    expect(wordsOf(await life.messages(fork.resource.id))).toEqual(['a', 'b', 'c']);
  });
});

describe('truncate', () => {
  test('keeps the first turns, tells what went, and leaves the log alone', async () => {
    const life = await openLife();
    const session = await life.session();
    const ids = await append(life, session, 'a', 'b', 'c', 'd');
    const before = await sessionEvents(life, session);
    const { resource, details } = await life.do('session.truncate', {
      session_id: session,
      keep_first: 2,
      reason: 'wrong turn',
    });
    expect(details).toEqual({ kept_turn_count: 2, removed_turn_count: 2, new_tip_turn_id: ids[1] });
    expect((resource as Session & Row).transcript).toMatchObject({ message_count: 2, tip_message_id: ids[1] });
    expect(wordsOf(await life.messages(session))).toEqual(['a', 'b']);
    expect(await faultOf(life.view('message', ids[3]!))).toMatchObject({ kind: 'not_found' });
    const after = await sessionEvents(life, session);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.at(-1)).toMatchObject({
      event: 'session.truncated',
      actor: 'ana',
      payload: { kept_turn_count: 2, removed: [ids[2], ids[3]], reason: 'wrong turn' },
    });
    const more = await append(life, session, 'e');
    expect((await life.view('session', session)).transcript).toMatchObject({
      message_count: 3,
      tip_message_id: more[0],
    });
  });

  test('to nothing, and to more than there is', async () => {
    const life = await openLife();
    const session = await life.session();
    const ids = await append(life, session, 'a', 'b');
    const cut = async (keep_first: number) =>
      (await life.do('session.truncate', { session_id: session, keep_first })).details;
    expect(await cut(9)).toEqual({ kept_turn_count: 2, removed_turn_count: 0, new_tip_turn_id: ids[1] });
    expect(await cut(0)).toEqual({ kept_turn_count: 0, removed_turn_count: 2, new_tip_turn_id: null });
    expect(await cut(0)).toEqual({ kept_turn_count: 0, removed_turn_count: 0, new_tip_turn_id: null });
  });

  test('stops the work that goes on, and a repeat of it does not stop what came after', async () => {
    const life = await openLife({ backends: [scripted('one', patient)] });
    const session = await life.session();
    const [running, queued] = [await life.submit(session), await life.submit(session)];
    const cut = () =>
      life.do('session.truncate', { session_id: session, keep_first: 0 }, { idempotency: { key: 'once' } });
    const first = await cut();
    for (const { id } of [running, queued]) {
      expect(await life.task(id)).toMatchObject({ status: 'CANCELED' });
      expect((await life.events(id)).at(-1)!.payload.reason).toBe('the session was cut back');
    }
    expect((await life.view('session', session)).state).toBe('IDLE');
    const later = await life.submit(session);
    const again = await cut();
    expect(again).toMatchObject({ repeated: true, details: first.details });
    expect((await life.task(later.id)).status).toBe('WORKING');
    expect(wordsOf(await life.messages(session))).toEqual(['please']);
  });

  test('with messages arriving meanwhile: each is kept whole or gone whole, and the count is right', async () => {
    const dir = await freshDir();
    const [one, two] = [await openLife({ dir }), await openLife({ dir })];
    const session = await one.session();
    for (let round = 0; round < 8; round += 1) {
      const cuts = [one, two].map((life) => life.do('session.truncate', { session_id: session, keep_first: round }));
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
    const life = await openLife();
    const session = await life.session();
    const ids = await append(life, session, 'a', 'b', 'c');
    await life.do('session.compact', {
      session_id: session,
      summary: 'they said a and b',
      through_message_id: ids[1]!,
    });
    expect((await life.view('session', session)).transcript).toMatchObject({
      compacted: true,
      compacted_through: ids[1],
      message_count: 3,
    });
    expect(wordsOf(await life.messages(session))).toEqual(['a', 'b', 'c']);
    expect((await sessionEvents(life, session)).at(-1)).toMatchObject({
      event: 'session.compacted',
      payload: { summary: 'they said a and b', through_message_id: ids[1] },
    });
    const [stranger] = await append(life, await life.session(), 'x');
    const elsewhere = { session_id: session, summary: '', through_message_id: stranger! };
    expect(await faultOf(life.do('session.compact', elsewhere))).toMatchObject({ kind: 'not_found' });
  });
});

describe('close', () => {
  test('ends the work, and every later write is a conflict', async () => {
    const life = await openLife({ backends: [scripted('one', patient)] });
    const session = await life.session();
    const [message] = await append(life, session, 'a');
    const [running, queued, outside] = [
      await life.submit(session),
      await life.submit(session),
      await life.submit(session, { agent: 'none' }),
    ];
    await life.do('session.close', { session_id: session });
    for (const { id } of [running, queued, outside]) {
      expect(await life.task(id)).toMatchObject({ status: 'CANCELED' });
    }
    const events = await sessionEvents(life, session);
    expect(events.at(-1)!.event).toBe('session.closed');
    const writes = [
      () => append(life, session, 'b'),
      () => life.submit(session),
      () => life.do('session.update', { session_id: session, summary: 's' }),
      () => life.do('session.truncate', { session_id: session, keep_first: 0 }),
      () => life.do('session.compact', { session_id: session, summary: 's', through_message_id: message! }),
      () => life.do('branch.create', { session_id: session, kind: 'session', base_ref: 'main' }),
      () => life.do('task.message', { task_id: running.id, kind: 'interrupt', message: said('hey') }),
      () => life.do('task.report', { task_id: outside.id, end: { state: 'COMPLETED' } }),
    ];
    for (const write of writes) expect(await faultOf(write())).toMatchObject({ kind: 'conflict' });
    // Closing twice is closing once.
    await life.do('session.close', { session_id: session });
    expect(await sessionEvents(life, session)).toHaveLength(events.length);
    expect(wordsOf(await life.messages(session))).toEqual(['a', 'please', 'please', 'please']);
  });

  test('no task outlives the session it was slipped into', async () => {
    const asked = latch();
    const release = latch();
    const slow = scripted('slow', async ({ signal }) => {
      await stopped(signal);
      asked.open();
      await release.opened;
    });
    const life = await openLife({ backends: [slow] });
    const session = await life.session();
    const first = await life.submit(session);
    const closing = life.do('session.close', { session_id: session }, { idempotency: { key: 'close' } });
    await asked.opened;
    const late = await life.submit(session);
    release.open();
    expect((await closing).resource).toMatchObject({ state: 'CLOSED' });
    for (const { id } of [first, late]) expect((await life.task(id)).status).toBe('CANCELED');
  });
});

describe('branches', () => {
  test('are made in a session and end once', async () => {
    const life = await openLife();
    const session = await life.session();
    const { resource } = await life.do('branch.create', { session_id: session, kind: 'session', base_ref: 'main' });
    expect(resource).toMatchObject({ object: 'branch', base_ref: 'main', created_by: 'ana', merged_into: null });
    const merged = await life.do('branch.end', { branch_id: resource.id, as: 'merged', merged_into: 'release' });
    expect(merged.resource).toMatchObject({ merged_into: 'release' });
    expect(await faultOf(life.do('branch.end', { branch_id: resource.id, as: 'abandoned' }))).toMatchObject({
      kind: 'conflict',
    });
    const side = await life.do('branch.create', {
      session_id: session,
      kind: 'sandbox',
      base_ref: 'main',
      parent_branch_id: resource.id,
    });
    await life.do('branch.end', { branch_id: side.resource.id, as: 'abandoned' });
    const told = (await sessionEvents(life, session)).filter(({ event }) => event.startsWith('branch.'));
    expect(told.map(({ event }) => event)).toEqual([
      'branch.created',
      'branch.merged',
      'branch.created',
      'branch.abandoned',
    ]);
    expect(await life.view('branch', side.resource.id)).toMatchObject({ parent_branch_id: resource.id });
  });
});

describe('what does not stand in a message', () => {
  test('a large part is an artifact, by hash, with the same visibility', async () => {
    const life = await openLife({ settings: { inlineLimit: 200 } });
    const session = await life.session();
    const long = 'long '.repeat(100);
    const part = { type: 'text', text: long, visibility: 'internal' };
    const { resource } = await life.do('message.append', {
      session_id: session,
      message: { role: 'user', parts: [{ type: 'text', text: 'short', visibility: 'public' }, part] },
    });
    const [short, reference] = (resource as Message & Row).parts as [object, { artifact_id: string }];
    expect(short).toEqual({ type: 'text', text: 'short', visibility: 'public' });
    expect(reference).toMatchObject({ type: 'artifact_ref', visibility: 'internal' });
    const artifact = await life.view<Artifact & Row>('artifact', reference.artifact_id);
    expect(artifact).toMatchObject({ session_id: session, mime_type: 'application/json', visibility: 'internal' });
    const bytes = await life.house.bridge.bytes(ana, artifact.id);
    expect(JSON.parse(Buffer.from(bytes).toString())).toEqual(part);
    expect(JSON.stringify(await sessionEvents(life, session))).not.toContain('long long');
  });

  test('a large input of another shape, large facts and large results too', async () => {
    const long = 'long '.repeat(100);
    const agent = scripted('one', async ({ work, sink }) => {
      expect(work.task.input).toMatchObject({ long }); // the agent gets it whole
      await sink.emit({ event: 'span.completed', payload: { long } });
      await sink.act({ kind: 'tool', tool: 'x', tool_call_id: 'c', arguments: { long } }, async (args) => {
        expect(args).toEqual({ long });
        return { status: 'ok', output: long };
      });
      await sink.emit(text(long));
    });
    const life = await openLife({ backends: [agent], settings: { inlineLimit: 200 } });
    const session = await life.session();
    const { id } = await life.submit(session, { input: { long } });
    expect((await life.ended(id)).status).toBe('COMPLETED');
    const events = await life.events(id);
    expect(JSON.stringify(events)).not.toContain('long long');
    const spilled = events.filter(({ event }) => event === 'artifact.created');
    expect(spilled).toHaveLength(5);
    // They hold what was said; they are not what the work produced.
    expect((await life.receipt(id)).final_artifacts).toEqual([]);
    const [outcome] = await life.house.store.list<Row & { artifacts: object[] }>({
      object: 'outcome',
      where: { task_id: id },
    });
    expect(outcome!.artifacts).toEqual([]);
  });

  test('receipt-only content is referred to and never shown', async () => {
    const hidden = 'for the receipt alone';
    const part = { type: 'text', text: hidden, visibility: 'receipt_only' };
    const told = latch();
    const agent = scripted('one', async ({ sink }) => {
      await sink.emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts: [part] } } });
      told.open();
      await sink.ask({ kind: 'input', key: 'k', question: '?' });
    });
    const life = await openLife({ backends: [agent] });
    const session = await life.session({ initial_messages: [{ role: 'user', parts: [part] }] });
    const message = { role: 'user' as const, parts: [part] };
    await life.do('message.append', { session_id: session, message });
    const { id } = await life.submit(session, { input: message });
    await told.opened;
    await until(async () => (await life.openAsks()).length === 1);
    await life.do('task.message', { task_id: id, kind: 'interrupt', message });
    await life.do('task.cancel', { task_id: id });
    const fork = await life.do('session.fork', { session_id: session });

    const listed = [...(await life.messages(session)), ...(await life.messages(fork.resource.id))];
    expect(listed).toHaveLength(10);
    const events = await all(life.house.store.read({ stream: { of: 'all' } }));
    for (const shown of [listed, events, await life.task(id)]) expect(JSON.stringify(shown)).not.toContain(hidden);

    const [reference] = listed[0]!.parts as { artifact_id: string; visibility: string }[];
    expect(reference).toMatchObject({ type: 'artifact_ref', visibility: 'receipt_only' });
    const { bridge } = life.house;
    const reader = { ...ana, scopes: ['artifacts:read'] };
    expect(await faultOf(bridge.bytes(reader, reference!.artifact_id))).toMatchObject({ kind: 'permission_denied' });
    const auditor = { ...ana, scopes: ['artifacts:read', 'receipts:read'] };
    expect(Buffer.from(await bridge.bytes(auditor, reference!.artifact_id)).toString()).toContain(hidden);
  });
});
