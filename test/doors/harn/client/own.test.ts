/** Our client against our own server: every way the demo agent can go. */
import { describe, expect, test } from 'vitest';
import type { Artifact, Message } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { kinds, of, says, states } from '../../../support/gateway/test-gateway.ts';
import { openTwo, RULES, said } from '../../../support/harn/two-gateways.ts';

describe('what the demo agent can do, done by a remote', () => {
  test('hello: streamed, said, completed, and both receipts lead to each other', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('hello');
    const task = await two.near.until(id);
    expect(task.status).toBe('COMPLETED');
    const events = await two.near.events(id);
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
    expect(of(events, 'vendor.tollbridge.message_delta').length).toBeGreaterThan(3);
    expect(await said(two, session)).toEqual([
      'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.',
    ]);
    const there = await two.there();
    const handoffs = of(events, 'agent.handoff').map(({ payload }) => payload);
    expect(handoffs).toEqual([
      { target_agent: 'far', task_id: there.id, status: 'accepted' },
      {
        target_agent: 'far',
        task_id: there.id,
        status: 'completed',
        receipt_id: expect.any(String),
        link: expect.objectContaining({
          checked: 'valid',
          protocol: 'harn',
          receipt_hash: expect.stringMatching(/^sha256:/),
        }),
      },
    ]);
    const [note] = of(events, 'vendor.tollbridge.note');
    expect(note?.payload).toMatchObject({
      note: 'the receipt of the remote is sound',
      remote_receipt: { valid: true, receipt_id: handoffs[1]?.receipt_id },
    });
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.side_effects.a2a_handoffs).toEqual([
      { target_agent: 'far', task_id: there.id, status: 'completed', receipt_id: handoffs[1]?.receipt_id },
    ]);
    expect(of(events, 'vendor.tollbridge.usage')).toHaveLength(1);
    expect(of(events, 'span.completed')).toHaveLength(1);
  });

  test('read: what its tools did is written down as observed, once', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('read plan');
    await two.near.until(id);
    const events = await two.near.events(id);
    expect(of(events, 'tool.requested').map(({ payload }) => payload)).toMatchObject([
      { name: 'read_note', input: { name: 'plan' }, effect: 'read', evidence: 'observed' },
    ]);
    expect(of(events, 'tool.completed').map(({ payload }) => payload.status)).toEqual(['ok']);
    expect(await said(two, session)).toEqual(['plan says: First look, then leap.']);
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.side_effects.tool_calls).toMatchObject([{ tool: 'read_note', status: 'succeeded' }]);
  });

  test.each([
    [true, 'Mail to bo is sent.', ['bo']],
    [false, 'I was not allowed to send mail to bo: not today', []],
  ] as const)('approval, answered here with %s', async (approved, words, outbox) => {
    const two = await openTwo({ near: { rules: RULES } });
    const { id, session } = await two.give('send the plan to bo');
    const [ask] = await two.near.asks(id);
    expect(ask).toMatchObject({ kind: 'approval', action: { tool: 'send_mail', target: 'bo', evidence: 'asked' } });
    expect((await two.there()).status).toBe('AUTH_REQUIRED');
    await two.near.answer(ask!.id, approved ? { approved } : { approved, reason: 'not today' });
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual([words]);
    expect(two.tools.outbox.map(({ to }) => to)).toEqual(outbox);
    const events = await two.near.events(id);
    expect(of(events, 'tool.requested')).toHaveLength(1);
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING', 'COMPLETED']);
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.approvals).toMatchObject([{ actor: 'ana', decision: approved ? 'approved' : 'denied' }]);
  });

  test('approval by rule: policy here answers what is asked there, and nobody is bothered', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('send the plan to bo');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual(['Mail to bo is sent.']);
    expect(states(await two.near.events(id))).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
  });

  test('a rule here can forbid what was asked there', async () => {
    const rules = '[{ id: all, then: allow }, { id: no, when: { tool: send_mail }, then: block, say: never }]';
    const two = await openTwo({ near: { rules } });
    const { id } = await two.give('send the plan to bo');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(two.tools.outbox).toEqual([]);
    expect(kinds(await two.near.events(id))).toContain('tool.denied');
  });

  test('input: asked there, answered here', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('ask which colour?');
    const [ask] = await two.near.asks(id);
    expect(ask).toMatchObject({ kind: 'input', question: 'which colour?' });
    await two.near.answer(ask!.id, { value: 'blue' });
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual(['You said: blue']);
    expect(states(await two.near.events(id))).toEqual([
      'SUBMITTED',
      'WORKING',
      'INPUT_REQUIRED',
      'WORKING',
      'COMPLETED',
    ]);
  });

  test('two questions one after the other', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('ask one? then ask two?');
    for (const value of ['first', 'second']) {
      const [ask] = await two.near.asks(id);
      await two.near.answer(ask!.id, { value });
    }
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual(['You said: first', 'You said: second']);
  });

  test('cancel here stops the work there', async () => {
    const two = await openTwo();
    const { id } = await two.give('wait 10000');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    await two.near.send('task.cancel', { task_id: id, reason: 'enough' });
    expect((await two.near.until(id)).status).toBe('CANCELED');
    await expect.poll(async () => (await two.there()).status).toBe('CANCELED');
  });

  test('cancel while a question is open', async () => {
    const two = await openTwo();
    const { id } = await two.give('ask which colour?');
    await two.near.asks(id);
    await two.near.send('task.cancel', { task_id: id });
    expect((await two.near.until(id)).status).toBe('CANCELED');
    await expect.poll(async () => (await two.there()).status).toBe('CANCELED');
  });

  test('artifact: files are fetched, kept by their hash, and referred to by our names', async () => {
    const two = await openTwo();
    const { id, session } = await two.give('artifact');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    const files = await two.near.runtime.store.list<Artifact & Row>({ object: 'artifact', where: { task_id: id } });
    const shown = await Promise.all(
      files.map(async ({ sha256, metadata }) => [
        metadata.name,
        String(await two.near.runtime.store.blob(sha256!).then((b) => Buffer.from(b!))),
      ]),
    );
    expect(shown).toEqual([
      ['report.md', '# Report\n\nNothing went wrong.\n'],
      ['report.patch', '--- a/report.md\n+++ b/report.md\n@@ -1 +1,3 @@\n # Report\n+\n+Nothing went wrong.\n'],
    ]);
    const list = { object: 'message', where: { session_id: session } };
    const last = (await two.near.runtime.store.list<Message & Row>(list)).at(-1);
    expect(last?.parts.slice(1).map((part) => (part as { artifact_id?: string }).artifact_id)).toEqual(
      files.map((file) => file.id),
    );
    expect((await two.near.receipts(id))[0]?.final_artifacts.map(({ sha256 }) => sha256)).toEqual(
      files.map(({ sha256 }) => `sha256:${sha256}`),
    );
  });

  test('fail: the failure there is the failure here', async () => {
    const two = await openTwo();
    const { id } = await two.give('fail out_of_paper');
    const task = await two.near.until(id);
    expect([task.status, task.failure?.code]).toEqual(['FAILED', 'out_of_paper']);
    expect(of(await two.near.events(id), 'agent.handoff').at(-1)?.payload).toMatchObject({ status: 'failed' });
  });

  test('long: every step is reported, in order', async () => {
    const two = await openTwo({ stepMs: 1 });
    const { id, session } = await two.give('wait 60');
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect(await said(two, session)).toEqual([Array.from({ length: 60 }, (_, n) => `step ${n + 1} of 60\n`).join('')]);
  });

  test('steer: what is said while it works is received there', async () => {
    const two = await openTwo({ stepMs: 20 });
    const { id } = await two.give('wait 10000');
    await two.near.seen(id, 'vendor.tollbridge.message_delta');
    const message = { role: 'user' as const, parts: [{ type: 'text', text: 'please stop', visibility: 'public' }] };
    await two.near.send('task.message', { task_id: id, kind: 'interrupt', message });
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    expect((await two.there()).events.filter((kind) => kind === 'user.message')).toHaveLength(2);
  });

  test('one session there for one session here, with what was said before', async () => {
    const two = await openTwo();
    const room = await two.near.room();
    await two.near.send('message.append', { session_id: room.session, message: says('by the way') as never });
    for (const text of ['hello', 'read plan']) {
      const { id } = await room.task({ input: says(text) });
      await two.near.until(id);
    }
    const sessions = (await two.far.call('GET', '/v1/sessions')).body.data;
    expect(sessions).toHaveLength(1);
    const { body } = await two.far.call('GET', `/v1/sessions/${sessions[0].id}/messages`);
    expect(body.data.map((m: Message) => [m.role, (m.parts[0] as { text: string }).text.slice(0, 12)])).toEqual([
      ['user', 'by the way'],
      ['user', 'hello'],
      ['assistant', 'Hello! I am '],
      ['user', 'read plan'],
      ['assistant', 'plan says: F'],
    ]);
  });

  test('what is for receipts only does not leave the gateway', async () => {
    const two = await openTwo();
    const room = await two.near.room();
    const parts = [
      { type: 'text', text: 'hello', visibility: 'public' },
      { type: 'text', text: 'between us', visibility: 'receipt_only' },
    ];
    const { id } = await room.task({ input: { role: 'user', parts } });
    await two.near.until(id);
    const { body } = await two.far.call('GET', '/v1/tasks');
    expect(JSON.stringify(body)).not.toContain('between us');
  });
});
