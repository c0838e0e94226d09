/** Resources over REST: declared, read, changed, listed. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { quick } from '../../support/gateway/agents.ts';
import { type Answer, expectFault, openDoor, text, VERSION } from '../../support/harn/gateway.ts';

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
