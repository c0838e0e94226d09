import { createHash, createPublicKey, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { FAULT_KINDS, Fault } from '../src/model/faults.ts';
import { canonicalJson } from '../src/receipt/canonical-json.ts';
import { decodeCbor } from '../src/receipt/cbor.ts';
import { scriptedAgent, untilAborted } from './support/agents.ts';
import { type Answer, openDoor, text, VERSION } from './support/door.ts';
import { rawHttp } from './support/raw-http.ts';

const quick = () => scriptedAgent(async () => undefined);
const patient = () =>
  scriptedAgent(async (_sink, _work, signal) => {
    await untilAborted(signal);
    return { state: 'CANCELED' };
  });

function expectFault(answer: Answer, status: number, code: string, type: string) {
  expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
  const { error } = answer.body;
  expect(error).toMatchObject({ code, type });
  expect(typeof error.message).toBe('string');
  expect(error.request_id).toBe(answer.headers.get('x-request-id'));
  expect(error.details).toBeTypeOf('object');
  expect('param' in error).toBe(true);
}

describe('before anything else', () => {
  test('discovery and card need neither version nor token, and take both', async () => {
    const { call } = await openDoor();
    for (const headers of [{}, { authorization: '', 'harn-agents-protocol-version': '' }]) {
      const discovery = await call('GET', '/v1', undefined, headers);
      expect(discovery.status).toBe(200);
      expect(discovery.body).toEqual({
        object: 'protocol_discovery',
        protocol_family: 'harn_agents_protocol',
        current_version: 'agents-protocol-2026-04-25',
        supported_versions: ['agents-protocol-2026-04-25'],
        capabilities: { rest: true, sse: true, websocket: true, receipts: true, replay: true },
      });
      expect((await call('GET', '/v1/agent-card', undefined, headers)).status).toBe(200);
      for (const path of ['/health', '/health/live', '/health/ready', '/version', '/openapi.json', '/docs']) {
        expect((await call('GET', path, undefined, headers)).status, path).toBe(200);
      }
      expect((await call('GET', '/.well-known/harn-receipt-keys.json', undefined, headers)).body.keys).toHaveLength(1);
    }
  });

  test('a wrong version is told before a missing token is', async () => {
    const { call } = await openDoor();
    const cases = [
      { authorization: '', 'harn-agents-protocol-version': '' },
      { authorization: '', 'harn-agents-protocol-version': 'agents-protocol-1900-01-01' },
      { 'harn-agents-protocol-version': 'agents-protocol-1900-01-01' },
      { authorization: 'Bearer wrong', 'harn-agents-protocol-version': `${VERSION} x` },
    ];
    for (const headers of cases) {
      const answer = await call('GET', '/v1/tasks', undefined, headers);
      expectFault(answer, 426, 'unsupported_protocol_version', 'request_error');
      expect(answer.body.error.details).toEqual({ supported_versions: [VERSION] });
      expect(answer.headers.get('harn-agents-protocol-version')).toBe(VERSION);
    }
  });

  test('no token, a wrong one, or two of them are nobody', async () => {
    const { call, url } = await openDoor();
    for (const authorization of ['', 'Bearer wrong', 'Basic YW5hOmFuYQ==', 'Bearer', 'Bearer ana, Bearer ana']) {
      const answer = await call('GET', '/v1/tasks', undefined, { authorization });
      expectFault(answer, 401, 'unauthenticated', 'auth_error');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    }
    const two = await rawHttp(
      url,
      `GET /v1/tasks HTTP/1.1\r\nHost: ${new URL(url).host}\r\nHarn-Agents-Protocol-Version: ${VERSION}\r\n` +
        'Authorization: Bearer ana\r\nAuthorization: Bearer ana\r\n\r\n',
    );
    expect(two.status).toBe(401);
  });

  test('metrics and the state of dependencies are for whoever may look after the house', async () => {
    const { call } = await openDoor();
    for (const path of ['/metrics', '/health/deps']) {
      expectFault(await call('GET', path, undefined, { authorization: '' }), 401, 'unauthenticated', 'auth_error');
    }
    expect((await call('GET', '/health/deps')).body).toMatchObject({
      ok: true,
      dependencies: [{ name: 'log', ok: true, detail: null }],
    });
    await call('GET', '/v1/tasks');
    const metrics = (await call('GET', '/metrics')).body as string;
    expect(metrics).toContain('tollbridge_http_requests_total{operation="listTasks",status="200"} 1\n');
    expect(metrics).toContain('tollbridge_streams_open{kind="sse"} 0\n');
  });

  test('a log that cannot be written makes the gateway not ready, and stays alive', async () => {
    const { call } = await openDoor({ trouble: () => 'the disk is full' });
    expect((await call('GET', '/health/live')).status).toBe(200);
    expect((await call('GET', '/health/ready')).status).toBe(503);
    expect((await call('GET', '/health')).body).toMatchObject({ ok: false, status: 'unavailable' });
    expect((await call('GET', '/health/deps')).body.dependencies).toEqual([
      { name: 'log', ok: false, detail: 'the disk is full' },
    ]);
  });

  test('there is nothing at other paths, and other methods do nothing', async () => {
    const { call } = await openDoor();
    for (const [method, path] of [
      ['GET', '/v1/nothing'],
      ['DELETE', '/v1/tasks'],
      ['PUT', '/v1/tasks/x'],
      ['GET', '/v1/tasks/x/y/z'],
      ['GET', '/v1/tasks/..%2f..%2fetc'],
      ['GET', '/v1/tasks/%00'],
    ] as const) {
      expectFault(await call(method, path), 404, 'resource_not_found', 'not_found_error');
    }
    expect((await call('GET', '/elsewhere')).status).toBe(404);
  });
});

describe('the card', () => {
  test('is what the documents and the suite look for, and is signed as a whole', async () => {
    const { call, url } = await openDoor();
    const { body: card } = await call('GET', '/v1/agent-card');
    expect(card).toMatchObject({ object: 'harn_agent_card', protocol_version: VERSION, name: 'Tollbridge' });
    expect(card.interfaces).toEqual(card.harn_interfaces);
    expect(card.a2a_agent_card).toEqual(card.a2a_card);
    expect(card.harn_interfaces.map(({ transport }: { transport: string }) => transport)).toEqual([
      'rest',
      'sse',
      'websocket',
    ]);
    expect(card.a2a_card).toMatchObject({
      preferredTransport: 'AGENTS_PROTOCOL',
      defaultInputModes: ['text/plain', 'application/json'],
    });
    expect(card.metadata.receipt_keys_url).toBe(`${url}/.well-known/harn-receipt-keys.json`);

    const { body: keys } = await call('GET', '/.well-known/harn-receipt-keys.json');
    const jwk = keys.keys.find(({ kid }: { kid: string }) => kid === card.signature.key_id);
    const { signature, ...rest } = card;
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    const holds = (document: unknown) =>
      verify(null, Buffer.from(canonicalJson(document)), key, Buffer.from(signature.value, 'base64'));
    expect(signature.algorithm).toBe('ed25519');
    expect(holds(rest)).toBe(true);
    expect(holds({ ...rest, name: 'Someone else' })).toBe(false);
  });

  test('the whole API stands a second time under /harn-suite, with the older card', async () => {
    const { call } = await openDoor();
    expect((await call('GET', '/harn-suite/v1/agent-card')).body).toMatchObject({ object: 'agent_card' });
    expect((await call('GET', '/harn-suite/v1')).body.object).toBe('protocol_discovery');
    expect((await call('GET', '/harn-suite/v1/tasks')).status).toBe(200);
    const off = await openDoor({ config: { suite_prefix: '', card: { object: 'agent_card', name: 'Mine' } } });
    expect((await off.call('GET', '/harn-suite/v1')).status).toBe(404);
    expect((await off.call('GET', '/v1/agent-card')).body).toMatchObject({ object: 'agent_card', name: 'Mine' });
  });
});

describe('resources', () => {
  test('workspaces and personas are made, read, changed and listed', async () => {
    const { call } = await openDoor();
    const made = await call('POST', '/v1/workspaces', {
      name: 'one',
      root: 'harn://conformance/x',
      metadata: { a: 1 },
      unknown: 'kept',
    });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ object: 'workspace', name: 'one', metadata: { a: 1 }, default_branch_id: null });
    const path = `/v1/workspaces/${made.body.id}`;
    expect((await call('PATCH', path, { name: 'two', metadata: { b: 2 } })).body).toMatchObject({
      name: 'two',
      metadata: { b: 2 },
    });
    expect((await call('GET', path)).body.name).toBe('two');
    expect((await call('GET', '/v1/workspaces')).body).toMatchObject({
      object: 'list',
      data: [{ id: made.body.id }],
      page: { has_more: false, next_cursor: null },
    });

    const persona = await call('POST', '/v1/personas', {
      name: 'p',
      version: '1',
      entry_workflow: 'agent',
      description: '',
      autonomy_tier: 'act_auto',
      receipt_policy: 'required',
    });
    expect(persona.status).toBe(201);
    const changed = await call('PATCH', `/v1/personas/${persona.body.id}`, { receipt_policy: 'optional' });
    expect(changed.body.receipt_policy).toBe('optional');
    const wrong = await call('PATCH', `/v1/personas/${persona.body.id}`, { receipt_policy: 'sometimes' });
    expectFault(wrong, 400, 'invalid_request', 'request_error');
  });

  test('memories are withdrawn for good; vaults never name a secret; quotas, skills and connectors are declared', async () => {
    const { call, room } = await openDoor();
    const { workspace, session } = await room();
    const memory = await call('POST', '/v1/memories', {
      scope: 'session',
      owner_id: session,
      content: { note: 1 },
      provenance: {},
    });
    expect(memory.body).toMatchObject({ object: 'memory', workspace_id: workspace });
    expect((await call('GET', `/v1/memories?session_id=${session}`)).body.data).toHaveLength(1);
    const path = `/v1/memories/${memory.body.id}`;
    const gone = await call('DELETE', path, undefined, { 'idempotency-key': 'k' });
    expect([gone.status, gone.body]).toEqual([204, '']);
    expect((await call('DELETE', path, undefined, { 'idempotency-key': 'k' })).status).toBe(204);
    expectFault(await call('GET', path), 404, 'resource_not_found', 'not_found_error');

    const vault = await call('POST', '/v1/vaults', {
      workspace_id: workspace,
      provider: 'conformance-oauth',
      capabilities: ['oauth_refresh'],
      metadata: { access_token: 'x', nested: { client_secret: 'y', fine: 1 } },
    });
    expect(vault.status).toBe(201);
    const again = await call('GET', `/v1/vaults/${vault.body.id}`);
    for (const answer of [vault, again, await call('GET', '/v1/vaults')]) {
      expect(JSON.stringify(answer.body)).not.toMatch(/access_token|refresh_token|client_secret|private_key/);
    }
    expect(again.body.metadata).toEqual({ nested: { fine: 1 } });

    for (const [path, body, object] of [
      ['/v1/quotas', { scope: 'workspace', limits: { tasks: 3 } }, 'quota'],
      ['/v1/skills', { name: 's', description: 'd' }, 'skill'],
      ['/v1/connectors', { provider: 'p', workspace_id: workspace, event_kinds: ['webhook'] }, 'connector'],
    ] as const) {
      const made = await call('POST', path, body);
      expect([made.status, made.body.object]).toEqual([201, object]);
      expect((await call('GET', `${path}/${made.body.id}`)).body).toEqual(made.body);
      expect((await call('GET', path)).body.data).toEqual([made.body]);
    }
  });

  test('sessions: opened, changed, written to, branched, forked, cut back, closed', async () => {
    const { call, room } = await openDoor({ agents: [quick()] });
    const { workspace } = await room();
    const made = await call('POST', '/v1/sessions', {
      workspace_id: workspace,
      initial_messages: [text('one'), text('two')],
    });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ object: 'session', state: 'IDLE' });
    const at = `/v1/sessions/${made.body.id}`;
    expect((await call('GET', at)).body.transcript).toMatchObject({
      message_count: 2,
      turn_count: 2,
      href: `${at}/messages`,
      compacted: false,
    });
    expect((await call('PATCH', at, { summary: 'probe', metadata: { a: 1 } })).body).toMatchObject({
      summary: 'probe',
    });

    const message = await call('POST', `${at}/messages`, { message: text('three') });
    expect([message.status, message.body.object]).toEqual([201, 'message']);
    expect((await call('GET', `/v1/messages/${message.body.id}`)).body.parts[0].text).toBe('three');
    const messages = (await call('GET', `${at}/messages`)).body.data;
    expect(messages.map(({ parts }: Answer['body']) => parts[0].text)).toEqual(['one', 'two', 'three']);

    const branch = await call('POST', `${at}/branches`, { kind: 'session', base_ref: 'main' });
    expect([branch.status, branch.body.object]).toEqual([201, 'branch']);
    expect((await call('GET', `/v1/branches/${branch.body.id}`)).body.base_ref).toBe('main');
    expect((await call('GET', `${at}/branches`)).body.data).toHaveLength(1);

    const fork = await call('POST', `${at}/fork`);
    expect(fork.status).toBe(201);
    expect(fork.body).toMatchObject({ parent_session_id: made.body.id, root_session_id: made.body.id, state: 'IDLE' });
    expect((await call('GET', `/v1/sessions/${fork.body.id}/messages`)).body.data).toHaveLength(3);

    const cut = await call('POST', `${at}/truncate`, { keep_first: 1, reason: 'again' });
    expect(cut.status).toBe(200);
    expect(cut.body).toMatchObject({
      object: 'session.truncate_result',
      session_id: made.body.id,
      kept_turn_count: 1,
      removed_turn_count: 2,
      new_tip_turn_id: messages[0].id,
      session: { object: 'session' },
    });
    expect((await call('GET', `${at}/messages`)).body.data).toHaveLength(1);

    expect((await call('POST', `${at}/close`)).body.state).toBe('CLOSED');
    for (const [path, body] of [
      ['messages', { message: text('late') }],
      ['tasks', { input: text('late') }],
      ['truncate', { keep_first: 0 }],
    ] as const) {
      expectFault(await call('POST', `${at}/${path}`, body), 409, 'conflict', 'conflict_error');
    }
    expect((await call('GET', `/v1/sessions?workspace_id=${workspace}&status=CLOSED`)).body.data).toHaveLength(1);
  });

  test('artifacts: registered, given their bytes, read whole and in part', async () => {
    const { call, room, url, headers } = await openDoor();
    const { workspace } = await room();
    const content = 'hello artifact';
    const sha256 = createHash('sha256').update(content).digest('hex');
    const wanted = { kind: 'log', mime_type: 'text/plain', visibility: 'public', workspace_id: workspace };
    const made = await call('POST', '/v1/artifacts', {
      ...wanted,
      uri: 'harn://x/y.txt',
      sha256: `sha256:${sha256.toUpperCase()}`,
    });
    expect([made.status, made.body.sha256]).toEqual([201, sha256]);
    const registered = await call('POST', '/v1/artifacts', { ...wanted, sha256: sha256.toUpperCase() });
    expect([registered.status, registered.body.sha256]).toEqual([201, sha256]);
    const at = `/v1/artifacts/${registered.body.id}`;
    expectFault(await call('GET', `${at}/content`), 409, 'conflict', 'conflict_error');

    const upload = (body: string) =>
      fetch(`${url}${at}/content`, { method: 'PUT', headers: headers({ 'content-type': 'text/plain' }), body });
    expect((await upload('something else')).status).toBe(400);
    const kept = await upload(content);
    expect([kept.status, ((await kept.json()) as Answer['body']).metadata.bytes]).toEqual([200, 14]);
    expect((await upload(content)).status).toBe(200);

    const whole = await call('GET', `${at}/content`);
    expect([whole.status, whole.body]).toEqual([200, content]);
    expect(whole.headers.get('content-type')).toBe('text/plain');
    expect(whole.headers.get('content-disposition')).toBe(`attachment; filename="${registered.body.id}"`);
    expect(whole.headers.get('x-content-type-options')).toBe('nosniff');
    expect(whole.headers.get('etag')).toBe(`"${sha256}"`);
    for (const [range, status, part, shown] of [
      ['bytes=0-4', 206, 'hello', 'bytes 0-4/14'],
      ['bytes=6-', 206, 'artifact', 'bytes 6-13/14'],
      ['bytes=-3', 206, 'act', 'bytes 11-13/14'],
      ['bytes=0-99', 206, content, 'bytes 0-13/14'],
      ['bytes=20-', 416, '', 'bytes */14'],
      ['bytes=5-2', 416, '', 'bytes */14'],
      ['bytes=0-1,3-4', 200, content, null],
      ['lines=1', 200, content, null],
    ] as const) {
      const answer = await call('GET', `${at}/content`, undefined, { range });
      expect([answer.status, answer.body, answer.headers.get('content-range')], range).toEqual([status, part, shown]);
    }
    expect((await call('GET', `/v1/artifacts?workspace_id=${workspace}`)).body.data).toHaveLength(2);
  });

  test('tools that are mounted can be listed', async () => {
    const { call } = await openDoor({
      tools: [
        {
          name: 'box',
          list: async () => [
            {
              id: 'skill_1',
              object: 'skill',
              created_at: '2026-01-01T00:00:00.000Z',
              updated_at: '2026-01-01T00:00:00.000Z',
              metadata: {},
              name: 'send mail',
              description: 'sends',
              input_schema: { type: 'object' },
              output_schema: null,
            },
          ],
          call: async () => ({ status: 'ok', output: null }),
        },
      ],
    });
    const { body } = await call('GET', '/v1/tools');
    expect(body.data).toEqual([
      {
        id: 'box.send-mail',
        object: 'tool',
        name: 'send mail',
        description: 'sends',
        input_schema: { type: 'object' },
        output_schema: {},
        server: 'box',
      },
    ]);
    expect((await call('GET', '/v1/tools/box.send-mail')).body.name).toBe('send mail');
    expectFault(await call('GET', '/v1/tools/box.other'), 404, 'resource_not_found', 'not_found_error');
    expect((await call('GET', '/v1/runtime')).body).toMatchObject({ object: 'runtime', protocol_version: VERSION });
    expect((await call('GET', '/v1/capabilities')).body.object).toBe('capability_summary');
  });
});

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
    const told = await call('POST', `/v1/permission-requests/${second!.id}/respond`, { answer: 'Wile' });
    expect(told.body).toMatchObject({ status: 'approved', response: { state: 'answered', answer: 'Wile' } });
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

describe('what callers do wrong', () => {
  test('bodies are checked, and the answer names the member', async () => {
    const { call, room, url, headers } = await openDoor({ agents: [quick()] });
    const { session } = await room();
    for (const [path, body, param] of [
      ['/v1/workspaces', {}, '/name'],
      ['/v1/workspaces', { name: 'x', root: 7 }, '/root'],
      ['/v1/workspaces', undefined, '/'],
      ['/v1/sessions', { workspace_id: 'no such/id' }, '/workspace_id'],
      ['/v1/tasks', { input: {} }, '/session_id'],
      [`/v1/sessions/${session}/tasks`, { input: 'text' }, '/input'],
      [`/v1/sessions/${session}/tasks`, { input: { role: 'user', parts: [{ type: 'text' }] } }, '/parts/0/text'],
      [`/v1/sessions/${session}/tasks`, { input: text('x'), agent: 'none' }, '/agent'],
      [`/v1/sessions/${session}/messages`, { message: { role: 'king', parts: [] } }, '/message/role'],
      [`/v1/sessions/${session}/truncate`, { keep_first: -1 }, '/keep_first'],
    ] as const) {
      const answer = await call('POST', path, body);
      expectFault(answer, 400, 'invalid_request', 'request_error');
      expect(answer.body.error.param, `${path} ${JSON.stringify(body)}`).toBe(param);
    }
    for (const body of ['{', 'nope', '"\\ud800"', '[1e999]']) {
      const answer = await call('POST', '/v1/workspaces', body);
      expectFault(answer, 400, 'invalid_request', 'request_error');
    }
    const form = await fetch(`${url}/v1/workspaces`, {
      method: 'POST',
      headers: headers(),
      body: new URLSearchParams('a=1'),
    });
    expect(form.status).toBe(400);
  });

  test('bodies too large, too deep or too many are refused', async () => {
    const { call } = await openDoor({ config: { json_limit: 10_000 } });
    for (const body of [
      JSON.stringify({ name: 'x'.repeat(20_000), root: 'r' }),
      `${'['.repeat(200)}${']'.repeat(200)}`,
      `{"a":${'['.repeat(70)}${']'.repeat(70)}}`,
    ]) {
      expectFault(await call('POST', '/v1/workspaces', body), 413, 'payload_too_large', 'request_error');
    }
    const deep = await openDoor();
    const many = `{"a":[${'1,'.repeat(150_000)}1]}`;
    expectFault(await deep.call('POST', '/v1/workspaces', many), 413, 'payload_too_large', 'request_error');
    expect((await deep.call('GET', '/v1/workspaces')).body.data).toEqual([]);
  });

  test('an endless chunked body is cut off and its connection closed', async () => {
    const { url } = await openDoor({ config: { json_limit: 2000 } });
    const { host } = new URL(url);
    const answer = await rawHttp(
      url,
      `POST /v1/workspaces HTTP/1.1\r\nHost: ${host}\r\nHarn-Agents-Protocol-Version: ${VERSION}\r\n` +
        `Authorization: Bearer ana\r\nTransfer-Encoding: chunked\r\n\r\n${`3e8\r\n${'x'.repeat(1000)}\r\n`.repeat(5)}`,
    );
    expect(answer.status).toBe(413);
    expect(answer.head.toLowerCase()).toContain('connection: close');
  });

  test('what is not there, and what cannot be done now, have their own codes', async () => {
    const { call, task: submit } = await openDoor({ agents: [patient()] });
    const { task, session } = await submit();
    for (const path of ['tasks', 'sessions', 'workspaces', 'messages', 'events', 'receipts', 'artifacts', 'memories']) {
      expectFault(await call('GET', `/v1/${path}/nothing`), 404, 'resource_not_found', 'not_found_error');
    }
    expectFault(await call('POST', `/v1/tasks/${task}/replay`), 409, 'conflict', 'conflict_error');
    expectFault(await call('POST', `/v1/sessions/${session}/replay`), 409, 'conflict', 'conflict_error');
    const wrong = await call('POST', `/v1/tasks/${task}/replay`, { mode: 'sideways' });
    expectFault(wrong, 400, 'invalid_request', 'request_error');
    const cursor = await call('GET', `/v1/tasks/${task}/events?after_event_id=evt_9999999999999999`);
    expectFault(cursor, 410, 'cursor_expired', 'request_error');
  });

  test('every kind of trouble has its status, its code and its type', async () => {
    const { call, at } = await openDoor();
    const bridge = at.house.bridge as { view: unknown };
    const { view } = bridge;
    for (const [kind, status, code, type] of [
      ['invalid_request', 400, 'invalid_request', 'request_error'],
      ['invalid_state_transition', 400, 'invalid_state_transition', 'request_error'],
      ['unauthenticated', 401, 'unauthenticated', 'auth_error'],
      ['permission_denied', 403, 'permission_denied', 'permission_error'],
      ['not_found', 404, 'resource_not_found', 'not_found_error'],
      ['conflict', 409, 'conflict', 'conflict_error'],
      ['idempotency_key_reused', 409, 'idempotency_key_reused', 'conflict_error'],
      ['cursor_expired', 410, 'cursor_expired', 'request_error'],
      ['payload_too_large', 413, 'payload_too_large', 'request_error'],
      ['policy_violation', 422, 'policy_violation', 'permission_error'],
      ['locked', 423, 'resource_locked', 'conflict_error'],
      ['unsupported_version', 426, 'unsupported_protocol_version', 'request_error'],
      ['rate_limited', 429, 'rate_limited', 'rate_limit_error'],
      ['client_closed', 499, 'client_closed_request', 'request_error'],
      ['internal', 500, 'internal_error', 'server_error'],
      ['not_implemented', 501, 'not_implemented', 'server_error'],
      ['upstream_unavailable', 502, 'upstream_unavailable', 'upstream_error'],
      ['unavailable', 503, 'service_unavailable', 'server_error'],
      ['deadline_exceeded', 504, 'deadline_exceeded', 'upstream_error'],
    ] as const) {
      bridge.view = async () => {
        throw new Fault(kind, 'because', { param: '/x', details: { retry_after_ms: 1500 } });
      };
      const answer = await call('GET', '/v1/tasks/x');
      expectFault(answer, status, code, type);
      expect(answer.body.error).toMatchObject({ message: 'because', param: '/x', details: { retry_after_ms: 1500 } });
      expect(answer.headers.get('retry-after')).toBe(kind === 'rate_limited' ? '2' : null);
    }
    bridge.view = view;
    expect(FAULT_KINDS).toHaveLength(19);
  });

  test('HEAD is GET without the body, also where GET would stream', async () => {
    const { url, headers, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task } = await submit();
    await at.until(task);
    for (const [path, type] of [
      ['/v1/tasks', 'application/json'],
      [`/v1/tasks/${task}/stream`, 'text/event-stream'],
      ['/v1/events/stream', 'text/event-stream'],
    ] as const) {
      const answer = await fetch(`${url}${path}`, { method: 'HEAD', headers: headers() });
      expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([200, type, '']);
    }
  });

  test('when the gateway itself fails, nobody hears why', async () => {
    const { call, at, room } = await openDoor();
    const { session } = await room();
    const broken = at.house.bridge as { view: unknown };
    const { view } = broken;
    broken.view = async () => {
      throw new Error('password=hunter2 at /srv/secret');
    };
    const answer = await call('GET', `/v1/sessions/${session}`);
    broken.view = view;
    expectFault(answer, 500, 'internal_error', 'server_error');
    expect(JSON.stringify(answer.body)).not.toMatch(/hunter2|srv/);
  });

  test('while the gateway shuts down, new work is 503', async () => {
    const { call, room, at } = await openDoor();
    const { workspace } = await room();
    await at.close();
    const answer = await call('POST', '/v1/sessions', { workspace_id: workspace });
    expectFault(answer, 503, 'service_unavailable', 'server_error');
  });
});

describe('pages', () => {
  test('follow each other without gap or repeat, whatever is added meanwhile', async () => {
    const { call } = await openDoor();
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) {
      ids.push((await call('POST', '/v1/workspaces', { name: `w${n}`, root: 'harn://w' })).body.id);
    }
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const { body }: Answer = await call('GET', `/v1/workspaces?limit=3${cursor ? `&cursor=${cursor}` : ''}`);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      expect(body.page.has_more).toBe(body.page.next_cursor !== null);
      cursor = body.page.next_cursor;
      pages += 1;
    } while (cursor);
    expect([seen, pages]).toEqual([ids, 3]);
  });

  test('limits and cursors outside their bounds are refused by name', async () => {
    const { call, room } = await openDoor();
    const { workspace } = await room();
    for (const limit of ['0', '201', '-1', '1.5', 'x', '', '0x10', '1e2']) {
      const answer = await call('GET', `/v1/tasks?limit=${limit}`);
      expectFault(answer, 400, 'invalid_request', 'request_error');
      expect(answer.body.error.param).toBe('limit');
    }
    for (const limit of ['1', '200']) expect((await call('GET', `/v1/tasks?limit=${limit}`)).status).toBe(200);
    const forged = Buffer.from(`after ${workspace}`).toString('base64url');
    for (const cursor of ['nonsense', '!!', forged, Buffer.from('after task_x').toString('base64url')]) {
      const answer = await call('GET', `/v1/tasks?cursor=${cursor}`);
      expectFault(answer, 400, 'invalid_request', 'request_error');
      expect(answer.body.error.param).toBe('cursor');
    }
    const twice = await call('GET', '/v1/tasks?limit=1&limit=2');
    expectFault(twice, 400, 'invalid_request', 'request_error');
  });

  test('event ranges are the same each time, exclude their cursor, and lead on from their end', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task, session, workspace } = await submit();
    await at.until(task);
    const path = `/v1/tasks/${task}/events`;
    const { body: all } = await call('GET', path);
    expect((await call('GET', path)).body).toEqual(all);
    expect(all.data.at(-1).event).toBe('task.completed');
    expect(all.page).toEqual({ has_more: false, next_cursor: all.data.at(-1).id });
    const ids = all.data.map(({ id }: { id: string }) => id);
    expect(ids).toEqual([...ids].toSorted());

    const rest = await call('GET', `${path}?after_event_id=${ids[0]}`);
    expect(rest.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(1));
    const page = await call('GET', `${path}?limit=2`);
    expect(page.body.page).toEqual({ has_more: true, next_cursor: ids[1] });
    expect((await call('GET', `${path}?cursor=${ids[1]}&limit=1`)).body.data[0].id).toBe(ids[2]);
    expect((await call('GET', `/v1/events/${ids[3]}`)).body).toEqual(all.data[3]);

    const counts = async (query: string) => (await call('GET', `/v1/events?limit=200&${query}`)).body.data.length;
    expect(await counts(`task_id=${task}`)).toBe(ids.length);
    expect(await counts(`task_id=${task}&session_id=${session}&workspace_id=${workspace}`)).toBe(ids.length);
    expect(await counts(`task_id=${task}&session_id=other`)).toBe(0);
    expect(await counts('task_id=hidden')).toBe(0);
    expect(await counts(`workspace_id=${workspace}`)).toBeGreaterThan(ids.length);
    expectFault(await call('GET', '/v1/tasks/hidden/events'), 404, 'resource_not_found', 'not_found_error');
    expectFault(await call('GET', `${path}?after_event_id=garbage`), 410, 'cursor_expired', 'request_error');
  });
});

describe('the same request again', () => {
  test('finds what the first one made; another body under the same key is refused', async () => {
    const { call, room } = await openDoor({ agents: [patient()] });
    const { session, workspace } = await room();
    const key = { 'idempotency-key': 'k1' };
    for (const [path, body, other] of [
      ['/v1/workspaces', { name: 'a', root: 'r' }, { name: 'b', root: 'r' }],
      ['/v1/sessions', { workspace_id: workspace }, { workspace_id: workspace, metadata: { x: 1 } }],
      [`/v1/sessions/${session}/tasks`, { input: text('a') }, { input: text('b') }],
      [`/v1/sessions/${session}/messages`, { message: text('a') }, { message: text('b') }],
      [`/v1/sessions/${session}/branches`, { kind: 'session', base_ref: 'm' }, { kind: 'task', base_ref: 'm' }],
      [
        '/v1/artifacts',
        { kind: 'log', mime_type: 'a/b', visibility: 'public', workspace_id: workspace },
        { kind: 'file', mime_type: 'a/b', visibility: 'public', workspace_id: workspace },
      ],
      [`/v1/sessions/${session}/fork`, {}, { metadata: { x: 1 } }],
    ] as const) {
      const first = await call('POST', path, body, key);
      const reordered = JSON.stringify(Object.fromEntries(Object.entries(body).toReversed()), null, 2);
      const second = await call('POST', path, reordered, key);
      expect([second.status, second.body.id], path).toEqual([first.status, first.body.id]);
      expectFault(await call('POST', path, other, key), 409, 'idempotency_key_reused', 'conflict_error');
    }
  });

  test('a hundred at once make one', async () => {
    const { call, room } = await openDoor({ agents: [patient()] });
    const { session } = await room();
    const many = await Promise.all(
      Array.from({ length: 100 }, () =>
        call('POST', `/v1/sessions/${session}/tasks`, { input: text('once') }, { 'idempotency-key': 'same' }),
      ),
    );
    expect(new Set(many.map(({ body }) => body.id)).size).toBe(1);
    expect((await call('GET', `/v1/sessions/${session}/tasks`)).body.data).toHaveLength(1);
  });

  test('keys are their holder’s own, and have bounds', async () => {
    const { call, room } = await openDoor({
      agents: [patient()],
      people: { bo: { id: 'bo', kind: 'person', scopes: ['*'] } },
    });
    const { session } = await room();
    const path = `/v1/sessions/${session}/tasks`;
    const mine = await call('POST', path, { input: text('a') }, { 'idempotency-key': 'k' });
    const theirs = await call(
      'POST',
      path,
      { input: text('a') },
      { 'idempotency-key': 'k', authorization: 'Bearer bo' },
    );
    expect(theirs.body.id).not.toBe(mine.body.id);
    const long = await call('POST', path, { input: text('a') }, { 'idempotency-key': 'k'.repeat(256) });
    expectFault(long, 400, 'invalid_request', 'request_error');
  });
});

describe('who may see what', () => {
  test('another tenant’s things are exactly as absent as things that never were', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task, session, workspace } = await submit();
    await at.until(task);
    const receipt = (await call('GET', `/v1/tasks/${task}`)).body.receipt_id;
    const event = (await call('GET', `/v1/tasks/${task}/events`)).body.data[0].id;
    const acme = { authorization: 'Bearer acme' };
    const paths = [
      ['GET', `/v1/workspaces/${workspace}`],
      ['PATCH', `/v1/workspaces/${workspace}`, { name: 'x' }],
      ['GET', `/v1/sessions/${session}`],
      ['GET', `/v1/sessions/${session}/messages`],
      ['GET', `/v1/sessions/${session}/tasks`],
      ['GET', `/v1/sessions/${session}/branches`],
      ['GET', `/v1/sessions/${session}/events`],
      ['GET', `/v1/sessions/${session}/events/stream`],
      ['POST', `/v1/sessions/${session}/tasks`, { input: text('x') }],
      ['POST', `/v1/sessions/${session}/close`],
      ['POST', `/v1/sessions/${session}/fork`],
      ['POST', `/v1/sessions/${session}/truncate`, { keep_first: 0 }],
      ['POST', `/v1/sessions/${session}/replay`],
      ['GET', `/v1/tasks/${task}`],
      ['POST', `/v1/tasks/${task}/cancel`],
      ['POST', `/v1/tasks/${task}/replay`],
      ['GET', `/v1/tasks/${task}/events`],
      ['GET', `/v1/tasks/${task}/stream`],
      ['GET', `/v1/tasks/${task}/receipts`],
      ['GET', `/v1/tasks/${task}/permission-requests`],
      ['GET', `/v1/receipts/${receipt}`],
      ['POST', `/v1/receipts/${receipt}/verify`],
      ['GET', `/v1/receipts/batches/${workspace}.0`],
      ['GET', `/v1/events/${event}`],
    ] as const;
    for (const [method, path, body] of paths) {
      const hidden = await call(method, path, body, acme);
      expectFault(hidden, 404, 'resource_not_found', 'not_found_error');
      const absentPath = path
        .replace(/(workspace|session|task|receipt)_[a-z0-9]+/, '$1_zz9999')
        .replace(/evt_\d+/, 'evt_0000009999999999');
      const absent = await call(method, absentPath, body, acme);
      const shape = ({ status, body: { error } }: Answer) => [
        status,
        error.code,
        error.message.replace(/\S*(_|evt)\S*/g, 'ID'),
      ];
      expect(shape(hidden), path).toEqual(shape(absent));
    }
    for (const list of [
      'workspaces',
      'sessions',
      'tasks',
      'events',
      'artifacts',
      'outcomes',
      'receipts',
      'permission-requests',
    ]) {
      expect((await call('GET', `/v1/${list}`, undefined, acme)).body.data, list).toEqual([]);
      expect((await call('GET', `/v1/${list}?workspace_id=${workspace}`, undefined, acme)).body.data, list).toEqual([]);
    }
  });

  test('a scope that is missing is 403, for every operation that needs one', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task, session } = await submit();
    await at.until(task);
    const nothing = { authorization: 'Bearer nothing' };
    for (const [method, path, body] of [
      ['GET', '/v1/tasks'],
      ['GET', `/v1/tasks/${task}`],
      ['GET', `/v1/sessions/${session}`],
      ['GET', `/v1/tasks/${task}/events`],
      ['GET', `/v1/tasks/${task}/stream`],
      ['GET', '/v1/receipts'],
      ['GET', '/v1/personas'],
      ['GET', '/v1/tools'],
      ['GET', '/v1/runtime'],
      ['GET', '/metrics'],
      ['GET', '/health/deps'],
      ['POST', `/v1/sessions/${session}/tasks`, { input: text('x') }],
      ['POST', '/v1/workspaces', { name: 'x', root: 'r' }],
      ['POST', `/v1/tasks/${task}/cancel`],
      ['POST', `/v1/tasks/${task}/replay`],
    ] as const) {
      expectFault(await call(method, path, body, nothing), 403, 'permission_denied', 'permission_error');
    }
    const reader = { authorization: 'Bearer reader' };
    expect((await call('GET', `/v1/tasks/${task}`, undefined, reader)).status).toBe(200);
    expectFault(
      await call('POST', `/v1/tasks/${task}/cancel`, {}, reader),
      403,
      'permission_denied',
      'permission_error',
    );
  });

  test('a complaint is ASCII on the wire, whatever it says', async () => {
    const { url, headers } = await openDoor({
      agents: [quick()],
      rules: '[{ id: no, when: { kind: session.open }, then: deny, say: "heute nicht: \u00fc \u{1f600}" }]',
    });
    const post = (path: string, body: object) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: headers({ 'content-type': 'application/json' }),
        body: JSON.stringify(body),
      });
    const { id } = (await (await post('/v1/workspaces', { name: 'w', root: 'r' })).json()) as { id: string };
    const answer = await post('/v1/sessions', { workspace_id: id });
    expect(answer.status).toBe(422);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.every((byte) => byte < 0x80)).toBe(true);
    expect(JSON.parse(bytes.toString()).error.message).toBe('heute nicht: \u00fc \u{1f600}');
  });
});
