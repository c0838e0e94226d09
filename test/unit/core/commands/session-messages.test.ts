/** Messages of a conversation: their order, and what does not stand in them but beside them. */
import { describe, expect, test } from 'vitest';
import type { Artifact, Message } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { all, openTestGateway, REAL_TIME, says } from '../../../support/gateway/test-gateway.ts';
import { append, range, sessionEvents, wordsOf } from '../../../support/tasks/conversation.ts';
import { latch, scripted, text } from '../../../support/tasks/script.ts';

describe('order', () => {
  test('messages stand in the order of the log, whatever they are called and however fast they come', async () => {
    const agent = scripted('one', async ({ sink }) => {
      // Names that sort backwards, times that are no help, and several within one millisecond.
      for (let n = 0; n < 150; n += 1) {
        const claimed = ['2020-01-01T00:00:00.000Z', '2199-01-01T00:00:00+02:00', undefined][n % 3];
        await sink.emit(text(`a${n}`, { id: `msg-${999 - n}`, ...(claimed && { created_at: claimed }) }));
      }
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
    const session = await gateway.session({ initial_messages: [says('first'), says('second')] });
    const { id } = await gateway.submit(session);
    await Promise.all(range(0, 40).map((word) => append(gateway, session, `p${word}`)));
    await gateway.until(id);
    const inLog = (await sessionEvents(gateway, session))
      .filter(({ event }) => event === 'user.message' || event === 'agent.message')
      .map(({ payload }) => (payload.message as unknown as Message).id);
    const listed = await gateway.messages(session);
    expect(listed).toHaveLength(193);
    expect(listed.map((message) => message.id)).toEqual(inLog);
    expect(wordsOf(listed).slice(0, 3)).toEqual(['first', 'second', 'please']);
    expect(wordsOf(listed).filter((word) => word?.startsWith('a'))).toEqual(range(0, 150).map((n) => `a${n}`));
    const times = listed.map(({ created_at }) => created_at);
    expect(times).toEqual([...new Set(times)].sort());
    const view = await gateway.view('session', session);
    expect(view.transcript).toMatchObject({ message_count: 193, turn_count: 193, tip_message_id: inLog.at(-1) });
  });

  test('a message said again under its id is the same turn, changed', async () => {
    const agent = scripted('one', async ({ sink }) => {
      await sink.emit(text('draft', { id: 'm' }));
      await sink.emit(text('other'));
      await sink.emit(text('final', { id: 'm' }));
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
    const session = await gateway.session();
    await gateway.until((await gateway.submit(session)).id);
    expect(wordsOf(await gateway.messages(session))).toEqual(['please', 'final', 'other']);
    expect((await gateway.view('session', session)).transcript).toMatchObject({ message_count: 3 });
    const cut = await gateway.send('session.truncate', { session_id: session, keep_first: 2 });
    expect(cut.details).toMatchObject({ kept_turn_count: 2, removed_turn_count: 1, new_tip_turn_id: 'm' });
  });

  test('an agent reads the conversation as it stands', async () => {
    const read: (string | undefined)[] = [];
    const agent = scripted('one', async ({ work }) => {
      read.push(...wordsOf(await all(work.transcript())));
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
    const session = await gateway.session();
    const words = range(0, 230);
    await append(gateway, session, ...words);
    await gateway.send('session.truncate', { session_id: session, keep_first: 210 });
    await gateway.until((await gateway.submit(session)).id);
    expect(read).toEqual([...words.slice(0, 210), 'please']);
  });
});

describe('what does not stand in a message', () => {
  test('a large part is an artifact, by hash, with the same visibility', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, settings: { inlineLimit: 200 } });
    const session = await gateway.session();
    const long = 'long '.repeat(100);
    const part = { type: 'text', text: long, visibility: 'internal' };
    const { resource } = await gateway.send(
      'message.append',
      {
        session_id: session,
        message: { role: 'user', parts: [{ type: 'text', text: 'short', visibility: 'public' }, part] },
      },
      { actor: { ...ana, sees: 'internal' } },
    );
    const [short, reference] = (resource as Message & Row).parts as [object, { artifact_id: string }];
    expect(short).toEqual({ type: 'text', text: 'short', visibility: 'public' });
    expect(reference).toMatchObject({ type: 'artifact_ref', visibility: 'internal' });
    const artifact = await gateway.view<Artifact & Row>('artifact', reference.artifact_id);
    expect(artifact).toMatchObject({ session_id: session, mime_type: 'application/json', visibility: 'internal' });
    const bytes = await gateway.runtime.bridge.bytes(ana, artifact.id);
    expect(JSON.parse(Buffer.from(bytes).toString())).toEqual(part);
    expect(JSON.stringify(await sessionEvents(gateway, session))).not.toContain('long long');
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
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent], settings: { inlineLimit: 200 } });
    const session = await gateway.session();
    const { id } = await gateway.submit(session, { input: { long } });
    expect((await gateway.until(id)).status).toBe('COMPLETED');
    const events = await gateway.events(id);
    expect(JSON.stringify(events)).not.toContain('long long');
    const spilled = events.filter(({ event }) => event === 'artifact.created');
    expect(spilled).toHaveLength(5);
    // They hold what was said; they are not what the work produced.
    expect((await gateway.receipt(id)).final_artifacts).toEqual([]);
    const [outcome] = await gateway.runtime.store.list<Row & { artifacts: object[] }>({
      object: 'outcome',
      where: { task_id: id },
    });
    expect(outcome!.artifacts).toEqual([]);
  });

  test('receipt-only content is referred to and never shown', async () => {
    const hidden = 'for the receipt alone';
    const part = { type: 'text', text: hidden, visibility: 'receipt_only' };
    const reported = latch();
    const agent = scripted('one', async ({ sink }) => {
      await sink.emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts: [part] } } });
      reported.open();
      await sink.ask({ kind: 'input', key: 'k', question: '?' });
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
    const session = await gateway.session({ initial_messages: [{ role: 'user', parts: [part] }] });
    const message = { role: 'user' as const, parts: [part] };
    await gateway.send('message.append', { session_id: session, message });
    const { id } = await gateway.submit(session, { input: message });
    await reported.opened;
    await eventually(async () => (await gateway.openAsks()).length === 1);
    await gateway.send('task.message', { task_id: id, kind: 'interrupt', message });
    await gateway.send('task.cancel', { task_id: id });
    const fork = await gateway.send('session.fork', { session_id: session });

    const listed = [...(await gateway.messages(session)), ...(await gateway.messages(fork.resource.id))];
    expect(listed).toHaveLength(10);
    const events = await all(gateway.runtime.store.read({ stream: { of: 'all' } }));
    for (const shown of [listed, events, await gateway.task(id)]) expect(JSON.stringify(shown)).not.toContain(hidden);

    const [reference] = listed[0]!.parts as { artifact_id: string; visibility: string }[];
    expect(reference).toMatchObject({ type: 'artifact_ref', visibility: 'receipt_only' });
    const { bridge } = gateway.runtime;
    const reader = { ...ana, scopes: ['artifacts:read'] };
    expect(await refusalOf(bridge.bytes(reader, reference!.artifact_id))).toMatchObject({ kind: 'permission_denied' });
    const auditor = { ...ana, scopes: ['artifacts:read', 'receipts:read'] };
    expect(Buffer.from(await bridge.bytes(auditor, reference!.artifact_id)).toString()).toContain(hidden);
  });
});
