/** Work over REST: given, asked about, ended and proven. */
import { describe, expect, test } from 'vitest';
import { decodeCbor } from '../../../src/receipt/export/cbor.ts';
import { patient, quick, scriptedAgent } from '../../support/gateway/agents.ts';
import { type Answer, expectFault, openDoor, text } from '../../support/harn/gateway.ts';

describe('tasks', () => {
  test('work is accepted as WORKING, ends with an outcome and a receipt, and can be replayed', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task, session, workspace } = await submit();
    await at.until(task);
    const { body: ended } = await call('GET', `/v1/tasks/${task}`);
    expect(ended).toMatchObject({ object: 'task', status: 'COMPLETED', workspace_id: workspace, created_by: 'ana' });

    const outcome = (await call('GET', `/v1/outcomes/${ended.outcome_id}`)).body;
    expect(outcome).toMatchObject({ object: 'outcome', status: 'SUCCEEDED', task_id: task });
    expect((await call('GET', `/v1/outcomes?task_id=${task}`)).body.data).toHaveLength(1);

    const { body: receipts } = await call('GET', `/v1/tasks/${task}/receipts`);
    expect(receipts.data).toHaveLength(1);
    expect((await call('GET', '/v1/receipts')).body.data).toEqual(receipts.data);
    const replayed = await call('POST', `/v1/tasks/${task}/replay`);
    expect(replayed.status).toBe(202);
    expect(replayed.body).toMatchObject({ parent_task_id: task, session_id: session });
    await at.until(replayed.body.id);
    expect((await call('GET', `/v1/sessions/${session}/tasks`)).body.data).toHaveLength(2);
    expect((await call('GET', `/v1/sessions/${session}/tasks?status=COMPLETED&limit=1`)).body.page.has_more).toBe(true);
  });

  test('a session is replayed task by task, and says so', async () => {
    const { call, room, at } = await openDoor({ agents: [quick()] });
    const { session } = await room();
    const sources: string[] = [];
    for (const said of ['one', 'two']) {
      const { body } = await call('POST', '/v1/tasks', { session_id: session, input: text(said) });
      await at.until(body.id);
      sources.push(body.id);
    }
    const answer = await call('POST', `/v1/sessions/${session}/replay`, { reason: 'check' });
    expect(answer.status).toBe(202);
    expect(answer.body.data.map(({ parent_task_id }: Answer['body']) => parent_task_id)).toEqual(sources);
    for (const { id } of answer.body.data) await at.until(id);
    const { body: events } = await call('GET', `/v1/sessions/${session}/events?limit=200`);
    const replayed = events.data.filter(({ event }: Answer['body']) => event === 'session.replayed');
    expect(replayed).toHaveLength(1);
    expect(replayed[0]).toMatchObject({
      resource: { object: 'session', id: session },
      payload: { mode: 'exact', tasks: 2 },
    });
  });

  test('what a caller writes into the metadata of a task neither makes it a replay nor hides one', async () => {
    const { call, room, at } = await openDoor({ agents: [quick()] });
    const { session } = await room();
    const sources: string[] = [];
    for (const metadata of [
      { replay_mode: 'exact' },
      { tollbridge: { replay: { stem: 'x', root: 'y' } } },
      { replay_mode: null, replay: true },
    ]) {
      const { body } = await call('POST', '/v1/tasks', { session_id: session, input: text('go'), metadata });
      await at.until(body.id);
      sources.push(body.id);
    }
    // Not even the caller of a replay can take the mark off it.
    for (const round of [1, 2]) {
      const metadata = { replay_mode: null, tollbridge: null, round };
      const { body } = await call('POST', `/v1/sessions/${session}/replay`, { metadata });
      expect(body.data.map(({ parent_task_id }: Answer['body']) => parent_task_id)).toEqual(sources);
      for (const { id } of body.data) await at.until(id);
    }
  });

  test('cancel answers 200 for what runs or was canceled, 409 for what ended otherwise', async () => {
    const { call, task: submit } = await openDoor({ agents: [patient()] });
    const { task } = await submit();
    const canceled = await call('POST', `/v1/tasks/${task}/cancel`, { reason: 'enough' });
    expect([canceled.status, canceled.body.status, canceled.body.completed_at]).toEqual([200, 'CANCELED', null]);
    expect((await call('POST', `/v1/tasks/${task}/cancel`)).body.status).toBe('CANCELED');
    expect((await call('GET', `/v1/tasks/${task}/receipts`)).body.data).toHaveLength(1);
    const again = await call('POST', `/v1/tasks/${task}/messages`, { kind: 'interrupt', message: text('x') });
    expectFault(again, 409, 'conflict', 'conflict_error');

    const other = await openDoor({ agents: [quick()] });
    const done = await other.task();
    await other.at.until(done.task);
    expectFault(await other.call('POST', `/v1/tasks/${done.task}/cancel`), 409, 'conflict', 'conflict_error');
  });

  test('several tasks may wait in one session; none is refused', async () => {
    const { call, room } = await openDoor({ agents: [patient()] });
    const { session } = await room();
    const answers = await Promise.all(
      [1, 2, 3].map((n) => call('POST', `/v1/sessions/${session}/tasks`, { input: text(`${n}`) })),
    );
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
    expect(answers.map(({ body }) => body.status).toSorted()).toEqual(['SUBMITTED', 'SUBMITTED', 'WORKING']);
    expect((await call('GET', `/v1/sessions/${session}`)).body.state).toBe('ACTIVE');
  });

  test('a persona policy that says no is 422; a quota that is used up is not 500', async () => {
    const { call, room } = await openDoor({ agents: [quick()] });
    const { workspace } = await room();
    const quota = await call('POST', '/v1/quotas', { scope: 'workspace', limits: { tasks: 1 } });
    await call('PATCH', `/v1/workspaces/${workspace}`, { quota_id: quota.body.id });
    const session = (await call('POST', '/v1/sessions', { workspace_id: workspace })).body.id;
    expect((await call('POST', `/v1/sessions/${session}/tasks`, { input: text('one') })).status).toBe(202);
    const over = await call('POST', `/v1/sessions/${session}/tasks`, { input: text('two') });
    expectFault(over, 422, 'policy_violation', 'permission_error');
    expect((await call('GET', `/v1/quotas/${quota.body.id}`)).body.usage).toEqual({ tasks: 1 });
  });
});

describe('questions', () => {
  const asker = () =>
    scriptedAgent(async (sink) => {
      const answer = await sink.ask({
        kind: 'approval',
        action: { kind: 'tool', tool: 'send', tool_call_id: 'c1', effect: 'send' },
      });
      const named = await sink.ask({ kind: 'input', key: 'name', question: 'Your name?' });
      const value = named.kind === 'value' ? String(named.value) : named.kind;
      return { state: 'COMPLETED', summary: `${answer.kind} ${value}` };
    });

  test('are permission requests: listed, answered once, and the task goes on', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [asker()] });
    const { task, session, workspace } = await submit();
    await at.asks(task);
    expect((await call('GET', `/v1/tasks/${task}`)).body.status).toBe('AUTH_REQUIRED');
    const { body: open } = await call('GET', `/v1/permission-requests?session_id=${session}&status=pending`);
    expect(open.data).toHaveLength(1);
    const [request] = open.data;
    expect(request).toMatchObject({
      object: 'permission_request',
      status: 'pending',
      source: 'hitl',
      task_id: task,
      session_id: session,
      workspace_id: workspace,
      response: null,
      request: { kind: 'approval', tool_call_id: 'c1' },
    });
    expect((await call('GET', `/v1/permission-requests/${request.id}`)).body).toEqual(request);

    const path = `/v1/permission-requests/${request.id}/respond`;
    for (const body of [{}, { outcome: 'perhaps' }, { approved: 'yes' }, { approved: true, outcome: 'denied' }]) {
      expectFault(await call('POST', path, body), 400, 'invalid_request', 'request_error');
    }
    const answered = await call('POST', path, { outcome: 'selected', reviewer: 'boss' }, { 'idempotency-key': 'a' });
    expect([answered.status, answered.body.status]).toEqual([200, 'approved']);
    expect(answered.body.response).toMatchObject({ state: 'approved', answered_by: 'ana' });
    expect(
      (await call('POST', path, { outcome: 'selected', reviewer: 'boss' }, { 'idempotency-key': 'a' })).status,
    ).toBe(200);
    const late = await call('POST', path, { approved: false });
    expectFault(late, 409, 'conflict', 'conflict_error');
    expect(late.body.error.details).toMatchObject({ state: 'approved', decided_by: 'ana' });

    const [second] = await at.asks(task);
    expect((await call('GET', `/v1/tasks/${task}`)).body.status).toBe('INPUT_REQUIRED');
    const reported = await call('POST', `/v1/permission-requests/${second!.id}/respond`, { answer: 'Wile' });
    expect(reported.body).toMatchObject({ status: 'approved', response: { state: 'answered', answer: 'Wile' } });
    await at.until(task);
    expect((await call('GET', `/v1/outcomes?task_id=${task}`)).body.data[0].summary).toBe('approved Wile');
    expect((await call('GET', `/v1/tasks/${task}/permission-requests?status=approved`)).body.data).toHaveLength(2);
    expect((await call('GET', `/v1/tasks/${task}/permission-requests?status=pending`)).body.data).toEqual([]);
    expectFault(await call('GET', '/v1/permission-requests?status=odd'), 400, 'invalid_request', 'request_error');
  });

  test('can be answered by messages on the task, too', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [asker()] });
    const { task } = await submit();
    const [ask] = await at.asks(task);
    const path = `/v1/tasks/${task}/messages`;
    const json = (value: unknown) => ({ role: 'user', parts: [{ type: 'json', value, visibility: 'public' }] });
    expectFault(
      await call('POST', path, { kind: 'input', message: text('too early') }),
      409,
      'conflict',
      'conflict_error',
    );
    expectFault(
      await call('POST', path, { kind: 'shout', message: text('x') }),
      400,
      'invalid_request',
      'request_error',
    );
    const confirmed = await call('POST', path, {
      kind: 'tool_confirmation',
      message: json({ request_id: ask!.id, approved: false, reason: 'not today' }),
    });
    expect([confirmed.status, confirmed.body.object]).toEqual([201, 'message']);
    await at.until(task, 'INPUT_REQUIRED');
    expect((await call('POST', path, { kind: 'input', message: text('Wile') })).status).toBe(201);
    await at.until(task);
    expect((await call('GET', `/v1/outcomes?task_id=${task}`)).body.data[0].summary).toBe('denied Wile');
  });

  test('need the scope for it, whichever way they are answered', async () => {
    const {
      call,
      task: submit,
      at,
    } = await openDoor({
      agents: [asker()],
      people: { worker: { id: 'worker', kind: 'service', scopes: ['tasks:read', 'tasks:write'] } },
    });
    const { task } = await submit();
    const [ask] = await at.asks(task);
    const worker = { authorization: 'Bearer worker' };
    expectFault(
      await call('POST', `/v1/permission-requests/${ask!.id}/respond`, { approved: true }, worker),
      403,
      'permission_denied',
      'permission_error',
    );
    const message = { role: 'user', parts: [{ type: 'json', value: { approved: true }, visibility: 'public' }] };
    expectFault(
      await call('POST', `/v1/tasks/${task}/messages`, { kind: 'tool_confirmation', message }, worker),
      403,
      'permission_denied',
      'permission_error',
    );
    expect((await call('GET', `/v1/tasks/${task}`)).body.status).toBe('AUTH_REQUIRED');
  });
});

describe('receipts', () => {
  test('as resource, as bare document, as CBOR, in a batch; verified and shown to be tampered with', async () => {
    const { call, task: submit, at, url, headers } = await openDoor({ agents: [quick()] });
    const { task, workspace } = await submit();
    await at.until(task);
    const [listed] = (await call('GET', `/v1/tasks/${task}/receipts`)).body.data;
    const path = `/v1/receipts/${listed.id}`;
    const { body: resource } = await call('GET', path);
    expect(resource).toMatchObject({
      object: 'receipt',
      format: 'receipt-2026-04-25',
      subject: { object: 'task', id: task },
      wire: { schema_version: 'receipt-2026-04-25', payload: { schema: 'receipt-2026-04-25' } },
    });
    const bare = await call('GET', path, undefined, { accept: 'application/vnd.harn.receipt+json' });
    expect(bare.headers.get('content-type')).toBe('application/vnd.harn.receipt+json');
    expect(bare.body).toEqual(resource.wire.payload);
    const cbor = await fetch(`${url}${path}`, { headers: headers({ accept: 'application/vnd.harn.receipt+cbor' }) });
    expect(cbor.headers.get('content-type')).toBe('application/vnd.harn.receipt+cbor; schema=receipt-2026-04-25');
    expect(decodeCbor(new Uint8Array(await cbor.arrayBuffer()))).toEqual(bare.body);

    const verified = await call('POST', `${path}/verify`, {});
    expect([verified.status, verified.body.valid]).toEqual([200, true]);
    expect(Date.parse(verified.body.checked_at)).toBeGreaterThan(0);
    const distrusted = await call('POST', `${path}/verify`, {
      trust_anchor: 'ed25519:00000000000000000000000000000000',
    });
    expect([distrusted.status, distrusted.body.valid]).toEqual([200, false]);

    const batch = await call('GET', `/v1/receipts/batches/${workspace}.0`);
    expect(batch.body).toMatchObject({
      object: 'receipt_batch',
      leaves: [resource.wire.payload.chain.receipt_hash],
      root: resource.wire.payload.chain.receipt_hash,
      complete: false,
    });
    for (const id of [`${workspace}.1`, 'nowhere.0', 'nonsense']) {
      expectFault(await call('GET', `/v1/receipts/batches/${id}`), 404, 'resource_not_found', 'not_found_error');
    }
  });
});
