import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { Receipt } from '../../../src/model/receipt.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { type Body, openDoor, text, VERSION } from '../../support/harn/gateway.ts';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const documents = new URL('../../../fixtures/harn/', import.meta.url);
const published = ['spec/openapi.yaml', 'later-revision/openapi.yaml'].map((name) => new URL(name, documents));
const newest = [new URL('2026-10-11/openapi.yaml', documents)];
const V2 = 'agents-protocol-2026-10-11';
/** Each revision, where its published documents are, and the word that steers a task in it. */
const REVISIONS = [
  { version: VERSION, documents: published, steers: 'interrupt' },
  { version: V2, documents: newest, steers: 'input' },
] as const;
const RECEIPT_SCHEMA = 'schemas/receipt-2026-04-25.schema.json';

function operationsOf(document: Body): [string, string, Body][] {
  return Object.entries(document.paths as Record<string, Body>).flatMap(([path, methods]) =>
    METHODS.flatMap((method): [string, string, Body][] => (methods[method] ? [[method, path, methods[method]]] : [])),
  );
}

function everyRef(node: unknown, found: string[] = []): string[] {
  if (Array.isArray(node)) for (const item of node) everyRef(item, found);
  else if (typeof node === 'object' && node !== null) {
    for (const [name, value] of Object.entries(node)) {
      if (name === '$ref') found.push(String(value));
      else everyRef(value, found);
    }
  }
  return found;
}

function resolve(document: Body, ref: string): unknown {
  return ref
    .slice(2)
    .split('/')
    .reduce((at: Body, name) => at?.[name], document);
}

/** A checker for the components of a document. `oneOf` with an open object would refuse every message: read as `anyOf`. */
function checkerFor(document: Body): (name: string, value: unknown) => string | undefined {
  const lenient = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(lenient);
    if (typeof node !== 'object' || node === null) return node;
    return Object.fromEntries(
      Object.entries(node).flatMap(([name, value]) =>
        name === 'discriminator' ? [] : [[name === 'oneOf' ? 'anyOf' : name, lenient(value)]],
      ),
    );
  };
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(JSON.parse(JSON.stringify(Receipt)), RECEIPT_SCHEMA);
  ajv.addSchema({ $id: 'doc', components: lenient(document.components) } as object);
  const compiled = new Map<string, ReturnType<typeof ajv.getSchema>>();
  return (name, value) => {
    const validate = compiled.get(name) ?? ajv.getSchema(`doc#/components/schemas/${name}`);
    compiled.set(name, validate);
    if (!validate) return `there is no schema ${name}`;
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
  };
}

describe('the document', () => {
  test('is whole: ids are unique, references lead somewhere, parameters are declared', async () => {
    const { call } = await openDoor();
    const { body: document } = await call('GET', '/openapi.json', undefined, { authorization: '' });
    expect(document.openapi).toBe('3.1.0');
    const operations = operationsOf(document);
    expect(operations.length).toBeGreaterThan(80);
    const ids = operations.map(([, , { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const ref of everyRef(document)) {
      if (ref.startsWith('#')) expect(resolve(document, ref), ref).toBeTypeOf('object');
      else expect((await call('GET', `/${ref}`, undefined, { authorization: '' })).status, ref).toBe(200);
    }
    for (const [method, path, operation] of operations) {
      const where = `${method} ${path}`;
      const declared = operation.parameters.filter((p: Body) => p.in === 'path').map((p: Body) => p.name);
      expect(declared, where).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      expect(operation.summary, where).toMatch(/\S/);
      expect(document.tags.map(({ name }: Body) => name)).toContain(operation.tags[0]);
      for (const [status, response] of Object.entries(operation.responses as Record<string, Body>)) {
        expect(response.$ref ?? response.description, `${where} ${status}`).toMatch(/\S/);
      }
      if (path.startsWith('/v1/') && operation.security.length > 0) {
        expect(operation.parameters, where).toContainEqual({ $ref: '#/components/parameters/ProtocolVersion' });
      }
    }
    expect(JSON.stringify(document)).not.toMatch(/~kind|~optional|undefined/);
    expect(document.servers).toEqual([{ url: '/' }]);
    expect((await call('GET', '/harn-suite/openapi.json')).body.servers).toEqual([{ url: '/harn-suite' }]);
  });

  test('every schema in it is one', async () => {
    const { call } = await openDoor();
    const { body: document } = await call('GET', '/openapi.json');
    const check = checkerFor(document);
    for (const name of Object.keys(document.components.schemas)) expect(() => check(name, {}), name).not.toThrow();
    expect(check('Task', { object: 'task' })).toMatch(/must have required property/);
  });

  test('the page for people names every operation and fetches nothing', async () => {
    const { call } = await openDoor();
    const { body: page, headers } = await call('GET', '/docs', undefined, { authorization: '' });
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; style-src 'unsafe-inline'");
    expect(page).toContain('POST /v1/sessions/{session_id}/truncate');
    expect(page).not.toMatch(/<script|src=|https?:\/\/(?!…)/);
  });

  test('has every operation of the newest published revision, and no success it does not know', async () => {
    const { call } = await openDoor();
    const { body: document } = await call('GET', '/openapi.json', undefined, { 'harn-agents-protocol-version': V2 });
    for (const url of newest) {
      const theirs = parse(readFileSync(url, 'utf8')) as Body;
      for (const [method, path, operation] of operationsOf(theirs)) {
        const ours = document.paths[path]?.[method];
        expect(ours?.operationId, `${method} ${path}`).toBe(operation.operationId);
        const known = Object.keys(operation.responses);
        const stream = path.endsWith('/stream') ? ['204'] : [];
        expect([...known, ...stream], `${method} ${path}`).toEqual(expect.arrayContaining(Object.keys(ours.responses)));
        const takesKey = (one: Body) =>
          (one.parameters ?? []).some(({ $ref = '' }: Body) => $ref.endsWith('/IdempotencyKey'));
        expect(takesKey(ours), `${method} ${path}`).toBe(takesKey(operation));
      }
    }
  });

  test('has every operation of both published revisions, with the same success', async () => {
    const { call } = await openDoor();
    const { body: document } = await call('GET', '/openapi.json');
    // The two revisions have 72 operations between them; the comparison below is for where they are at hand.
    expect([...operationsOf(document)].length).toBeGreaterThanOrEqual(72);
    for (const url of published) {
      const theirs = parse(readFileSync(url, 'utf8')) as Body;
      for (const [method, path, operation] of operationsOf(theirs)) {
        const ours = document.paths[path]?.[method];
        expect(ours?.operationId, `${method} ${path}`).toBe(operation.operationId);
        const success = Object.keys(operation.responses).filter((status) => status.startsWith('2'));
        expect(Object.keys(ours.responses), `${method} ${path}`).toEqual(expect.arrayContaining(success));
      }
    }
  });
});

test('a receipt refers to its schema, which is served and is the one receipts fit', async () => {
  const { call, task, at } = await openDoor({ agents: [scriptedAgent(async () => undefined)] });
  for (const { version } of REVISIONS) {
    const { body: document } = await call('GET', '/openapi.json', undefined, {
      'harn-agents-protocol-version': version,
    });
    expect(document.info.version).toBe(version);
    expect(document.components.schemas.Receipt.properties.wire.properties.payload).toEqual({ $ref: RECEIPT_SCHEMA });
    const { content } = document.paths['/v1/receipts/{receipt_id}'].get.responses[200];
    expect(content['application/vnd.harn.receipt+json'].schema).toEqual({ $ref: RECEIPT_SCHEMA });
  }
  const served = await call('GET', `/${RECEIPT_SCHEMA}`, undefined, { authorization: '' });
  expect(served.headers.get('content-type')).toBe('application/schema+json');
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  const fits = ajv.compile(served.body);
  const { task: id } = await task();
  await at.until(id);
  const { body: list } = await call('GET', `/v1/tasks/${id}/receipts`);
  expect(fits(list.data[0].wire.payload), ajv.errorsText(fits.errors)).toBe(true);
  expect(fits({ ...list.data[0].wire.payload, more: 1 })).toBe(false);
});

test.each(REVISIONS)(
  'what the door says in $version is what its documents say',
  async ({ version, documents: files, steers }) => {
    const newer = version === V2;
    const door = await openDoor({
      agents: [
        scriptedAgent(async (sink) => {
          await sink.ask({
            kind: 'approval',
            action: { kind: 'tool', tool: 'send', tool_call_id: 'c', effect: 'send' },
          });
          await sink.artifact({ kind: 'file', mime_type: 'text/plain', bytes: Buffer.from('x') });
          await sink.emit({
            event: 'agent.message',
            payload: { message: { role: 'assistant', parts: [{ type: 'text', text: 'done', visibility: 'public' }] } },
          });
          return undefined;
        }),
      ],
    });
    const { at } = door;
    const call = (method: string, path: string, body?: unknown) =>
      door.call(method, path, body, { 'harn-agents-protocol-version': version });
    const { body: own } = await call('GET', '/openapi.json');
    const documents = [own, ...files.map((url) => parse(readFileSync(url, 'utf8')))];
    const checkers = documents.map(checkerFor);
    const visited = new Set<string>();

    async function tour(
      method: string,
      template: string,
      ids: Record<string, string> = {},
      body?: unknown,
    ): Promise<Body> {
      const path = template.replace(/\{(\w+)\}/g, (_, name) => ids[name] ?? 'missing');
      const answer = await call(method, path, body);
      visited.add(`${method} ${template.split('?')[0]}`);
      for (const [index, document] of documents.entries()) {
        const operation = document.paths[template.split('?')[0]!]?.[method.toLowerCase()];
        if (!operation) continue;
        const response = operation.responses[answer.status];
        expect(
          response,
          `${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 300)}`,
        ).toBeDefined();
        const schema = response.content?.['application/json']?.schema?.$ref?.split('/').at(-1);
        if (schema) expect(checkers[index]!(schema, answer.body), `${method} ${path}`).toBe(undefined);
      }
      return answer.body;
    }

    await tour('GET', '/v1');
    await tour('GET', '/v1/agent-card');
    for (const path of [
      '/health',
      '/health/live',
      '/health/ready',
      '/health/deps',
      '/version',
      '/v1/runtime',
      '/v1/capabilities',
    ])
      await tour('GET', path);
    const { id: workspace_id } = await tour('POST', '/v1/workspaces', {}, { name: 'w', root: 'harn://w' });
    await tour('GET', '/v1/workspaces/{workspace_id}', { workspace_id });
    await tour('PATCH', '/v1/workspaces/{workspace_id}', { workspace_id }, { name: 'x' });
    const { id: persona_id } = await tour(
      'POST',
      '/v1/personas',
      {},
      {
        name: 'p',
        version: '1',
        entry_workflow: 'agent',
        description: '',
        autonomy_tier: 'act_auto',
        receipt_policy: 'required',
      },
    );
    await tour('GET', '/v1/personas/{persona_id}', { persona_id });
    await tour('PATCH', '/v1/personas/{persona_id}', { persona_id }, { description: 'd' });
    const { id: session_id } = await tour(
      'POST',
      '/v1/sessions',
      {},
      { workspace_id, persona_id, initial_messages: [text('hi')] },
    );
    await tour('GET', '/v1/sessions/{session_id}', { session_id });
    await tour('PATCH', '/v1/sessions/{session_id}', { session_id }, { summary: 's' });
    const { id: message_id } = await tour(
      'POST',
      '/v1/sessions/{session_id}/messages',
      { session_id },
      { message: text('x') },
    );
    await tour('GET', '/v1/messages/{message_id}', { message_id });
    const { id: branch_id } = await tour(
      'POST',
      '/v1/sessions/{session_id}/branches',
      { session_id },
      { kind: 'session', base_ref: 'm' },
    );
    await tour('GET', '/v1/branches/{branch_id}', { branch_id });

    const { id: task_id } = await tour(
      'POST',
      '/v1/sessions/{session_id}/tasks',
      { session_id },
      { input: text('go') },
    );
    const [ask] = await at.asks(task_id);
    await tour('GET', '/v1/permission-requests');
    await tour('GET', '/v1/tasks/{task_id}/permission-requests', { task_id });
    await tour('POST', '/v1/tasks/{task_id}/messages', { task_id }, { kind: steers, message: text('faster') });
    await tour('POST', '/v1/permission-requests/{request_id}/respond', { request_id: ask!.id }, { approved: true });
    await tour('GET', '/v1/permission-requests/{request_id}', { request_id: ask!.id });
    await at.until(task_id);
    const task = await tour('GET', '/v1/tasks/{task_id}', { task_id });
    await tour('GET', '/v1/outcomes/{outcome_id}', { outcome_id: task.outcome_id });
    await tour('GET', '/v1/receipts/{receipt_id}', { receipt_id: task.receipt_id });
    await tour('POST', '/v1/receipts/{receipt_id}/verify', { receipt_id: task.receipt_id }, {});
    await tour('GET', '/v1/receipts/batches/{batch_id}', { batch_id: `${workspace_id}.0` });
    await tour('GET', '/v1/tasks/{task_id}/receipts', { task_id });
    const { data: events } = await tour('GET', '/v1/tasks/{task_id}/events?limit=200', { task_id });
    for (const { id: event_id } of events) await tour('GET', '/v1/events/{event_id}', { event_id });
    const { id: replay } = await tour('POST', '/v1/tasks/{task_id}/replay', { task_id });
    await at.until(replay);
    await tour('GET', '/v1/tasks/{task_id}/events?limit=200', { task_id: replay });
    const { id: doomed } = await tour('POST', '/v1/tasks', {}, { session_id, input: { anything: 1 } });
    await tour('POST', '/v1/tasks/{task_id}/cancel', { task_id: doomed }, { reason: 'r' });

    const { id: artifact_id } = await tour(
      'POST',
      '/v1/artifacts',
      {},
      { kind: 'log', mime_type: 'text/plain', visibility: 'public', workspace_id },
    );
    await tour('GET', '/v1/artifacts/{artifact_id}', { artifact_id });
    await tour(
      'POST',
      '/v1/artifacts/{artifact_id}/link',
      { artifact_id },
      { to: { object: 'session', id: session_id } },
    );
    await tour('POST', '/v1/artifacts/{artifact_id}/redact', { artifact_id }, { reason: 'r' });
    const { id: memory_id } = await tour(
      'POST',
      '/v1/memories',
      {},
      { scope: 'workspace', owner_id: workspace_id, content: 'c', provenance: {} },
    );
    await tour('GET', '/v1/memories/{memory_id}', { memory_id });
    const { id: vault_id } = await tour('POST', '/v1/vaults', {}, { provider: 'env', capabilities: [], workspace_id });
    await tour('GET', '/v1/vaults/{vault_id}', { vault_id });
    const { id: connector_id } = await tour(
      'POST',
      '/v1/connectors',
      {},
      { provider: 'p', workspace_id, event_kinds: [] },
    );
    await tour('GET', '/v1/connectors/{connector_id}', { connector_id });
    const { id: skill_id } = await tour('POST', '/v1/skills', {}, { name: 's', description: 'd' });
    await tour('GET', '/v1/skills/{skill_id}', { skill_id });
    const { id: quota_id } = await tour('POST', '/v1/quotas', {}, { scope: 'workspace', limits: { tasks: 9 } });
    await tour('GET', '/v1/quotas/{quota_id}', { quota_id });
    const lists = [
      'personas',
      'workspaces',
      'sessions',
      'tasks',
      'artifacts',
      'events',
      'memories',
      'vaults',
      'connectors',
      'skills',
      'tools',
      'outcomes',
      'quotas',
      'receipts',
    ];
    for (const list of lists) await tour('GET', `/v1/${list}`);
    for (const list of ['messages', 'tasks', 'branches', 'events'])
      await tour('GET', `/v1/sessions/{session_id}/${list}`, { session_id });
    const { data: replays } = await tour('POST', '/v1/sessions/{session_id}/replay', { session_id });
    for (const { id } of replays) await at.until(id);
    if (newer) {
      const client = { client_id: 'desktop' };
      await tour('POST', '/v1/sessions/{session_id}/attach', { session_id }, { ...client, mode: 'controller' });
      await tour('POST', '/v1/sessions/{session_id}/heartbeat', { session_id }, client);
      await tour('POST', '/v1/sessions/{session_id}/inputs', { session_id }, { kind: 'list' });
      await tour('POST', '/v1/sessions/{session_id}/takeover', { session_id }, { client_id: 'phone' });
      await tour('GET', '/v1/sessions/{session_id}/live-clients', { session_id });
      await tour('GET', '/v1/sessions/{session_id}', { session_id });
      await tour('POST', '/v1/sessions/{session_id}/detach', { session_id }, client);
      await tour('GET', '/v1/provider-catalog');
      await tour('GET', '/v1/permissions/policy');
      await tour('PUT', '/v1/permissions/policy', {}, { read: ['/tmp/*'] });
      const rule = { scope: 'always', class: 'exec', action_pattern: '*', target_pattern: 'rm *', allow: false };
      const { id: rule_id } = await tour('POST', '/v1/permissions/rules', {}, rule);
      await tour('GET', '/v1/permissions/rules');
      const act = { session_id, actor: 'agent:x', class: 'exec', action: 'bash', target: 'rm -rf /' };
      await tour('POST', '/v1/permissions/check', {}, act);
      await tour('GET', '/v1/permissions/history');
      await tour('DELETE', '/v1/permissions/rules/{rule_id}', { rule_id });
    }
    for (const end of ['merge', 'abandon']) {
      const { branch_id } = await tour('POST', '/v1/sessions/{session_id}/fork', { session_id });
      await tour('PATCH', '/v1/branches/{branch_id}', { branch_id }, { worktree_uri: 'file:///w' });
      await tour('POST', `/v1/branches/{branch_id}/${end}`, { branch_id }, {});
    }
    await tour('POST', '/v1/sessions/{session_id}/truncate', { session_id }, { keep_first: 1 });
    await tour('POST', '/v1/sessions/{session_id}/close', { session_id });
    await tour('DELETE', '/v1/memories/{memory_id}', { memory_id });

    const elsewhere = [
      'GET /v1/tools/{tool_id}',
      'GET /v1/workspaces/{workspace_id}/files',
      'PUT /v1/workspaces/{workspace_id}/files',
      'GET /v1/artifacts/{artifact_id}/content',
      'PUT /v1/artifacts/{artifact_id}/content',
      'POST /v1/connectors/{connector_id}/deliveries',
      'GET /v1/sessions/{session_id}/events/stream',
      'GET /v1/tasks/{task_id}/stream',
      'GET /v1/events/stream',
      'GET /metrics',
      'GET /openapi.json',
      'GET /docs',
      'GET /.well-known/harn-receipt-keys.json',
      `GET /${RECEIPT_SCHEMA}`,
    ];
    const all = operationsOf(own).map(([method, path]) => `${method.toUpperCase()} ${path}`);
    expect(all.filter((one) => !visited.has(one)).toSorted()).toEqual(elsewhere.toSorted());
  },
);
