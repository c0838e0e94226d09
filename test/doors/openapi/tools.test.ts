/** An HTTP API as a tool server: its operations are tools, calls carry our credentials, and arguments lead nowhere else. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Operation, operationsOf } from '../../../adapters/openapi/client/operations.ts';
import { requestFor } from '../../../adapters/openapi/client/request.ts';
import { openapi } from '../../../adapters/openapi/index.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { PartContext } from '../../../src/ports/index.ts';
import { openTestGateway } from '../../support/gateway/test-gateway.ts';

const DOCUMENT = `openapi: 3.0.3
info: { title: Pets, version: '1' }
servers: [{ url: 'http://127.0.0.1:1/inside' }]
paths:
  /pets/{id}:
    parameters: [{ $ref: '#/components/parameters/Id' }]
    get:
      operationId: getPet
      summary: Shows a pet
      parameters:
        - { name: fields, in: query, schema: { type: array, items: { type: string } } }
        - { name: X-Trace, in: header, schema: { type: string } }
        - { name: Authorization, in: header, schema: { type: string } }
    delete: { operationId: removePet }
  /pets:
    post:
      summary: Adds a pet
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: '#/components/schemas/Pet' } } }
components:
  parameters: { Id: { name: id, in: path, required: true, schema: { type: string } } }
  schemas:
    Pet:
      type: object
      required: [name]
      properties: { name: { type: string }, tag: { type: string, nullable: true }, parent: { $ref: '#/components/schemas/Pet' } }
`;

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

async function openApi() {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += String(piece);
    asked.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
    const status = request.url?.includes('missing') ? 404 : 200;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ said: request.method }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const dir = await mkdtemp(join(tmpdir(), 'tb-openapi-'));
  onTestFinished(async () => {
    server.close();
    await rm(dir, { recursive: true, force: true });
  });
  const document = join(dir, 'pets.yaml');
  await writeFile(document, DOCUMENT);
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const secret = async (name: string) => `value-of-${name}`;
  const clock = { now: () => new Date(0).toISOString() };
  const open = (config: object) =>
    openapi.parts.tools.open({ document, ...config }, { name: 'pets', secret, clock } as unknown as PartContext);
  return { asked, address, open };
}

const RULES = `- { id: reads, when: { effect: read }, then: allow }
- { id: writes, when: { effect: write }, then: allow }
- { id: no, when: { effect: delete }, then: block, say: not that }`;

test('operations are tools, by effect of their method, and a call is a request with our credentials', async () => {
  const { asked, address, open } = await openApi();
  const t = await openTestGateway({ tools: [open({ server: address, token: 'pets' })], rules: RULES });
  const task = await (await t.room()).task({ agent: 'none' });
  const call = async (tool: string, args: JsonObject) =>
    (await t.send('tool.call', { task_id: task.id, action: { kind: 'tool', tool, arguments: args } })).act;

  const done = await call('getPet', { id: 'a/b', fields: ['x', 'y z'], 'X-Trace': 't' });
  expect(done).toMatchObject({ kind: 'done', result: { status: 'ok', output: { said: 'GET' } } });
  expect(asked[0]).toMatchObject({
    method: 'GET',
    url: '/v1/pets/a%2Fb?fields=x&fields=y+z',
    headers: { authorization: 'Bearer value-of-pets', 'x-trace': 't' },
  });
  expect(await call('post_pets', { body: { name: 'Rex', tag: null } })).toMatchObject({ kind: 'done' });
  expect(asked[1]).toMatchObject({ method: 'POST', body: '{"name":"Rex","tag":null}' });
  expect(await call('getPet', { id: 'missing' })).toMatchObject({
    result: { status: 'error', error: 'the API answered 404' },
  });

  // Nothing of these reaches the API.
  expect(await call('removePet', { id: '1' })).toMatchObject({ kind: 'refused', reason: 'not that' });
  expect(await call('post_pets', { body: { tag: 'x' } })).toMatchObject({
    kind: 'refused',
    decision: { code: 'invalid_arguments' },
  });
  expect(await call('getPet', { id: '1', Authorization: 'mine' })).toMatchObject({ kind: 'refused' });
  expect(await call('getPet', { id: '..' })).toMatchObject({ kind: 'done', result: { status: 'error' } });
  expect(asked).toHaveLength(3);
});

test('a call carries the credentials of its caller, and no others', async () => {
  const { asked, address, open } = await openApi();
  const tokens = { ann: 'anns', '*': 'pets-{caller}' };
  const tools = open({ server: address, caller_tokens: tokens });
  const action = { id: 'a', kind: 'tool', tool: 'getPet', arguments: { id: '1' } };
  const as = (id: string, more = {}) =>
    tools.call({ ...action, actor: { id, kind: 'person', scopes: [], ...more } } as never, AbortSignal.timeout(5_000));
  for (const id of ['ann', 'bob']) await as(id);
  await as('agent:x', { kind: 'agent', on_behalf_of: 'bob' });
  const sent = asked.map(({ headers }) => headers.authorization);
  expect(sent).toEqual(['Bearer value-of-anns', 'Bearer value-of-pets-bob', 'Bearer value-of-pets-bob']);

  const none = open({ server: address, caller_tokens: { ann: 'anns' } });
  const eve = { ...action, actor: { id: 'eve', kind: 'person', scopes: [] } } as never;
  await expect(none.call(eve, AbortSignal.timeout(5_000))).rejects.toThrow('pets has no credentials of eve');
  const exchange = { token_endpoint: `${address}/token` };
  await expect(open({ server: address, exchange }).call(eve, AbortSignal.timeout(5_000))).rejects.toThrow(
    'eve did not authenticate with an access token',
  );
  expect(asked).toHaveLength(3);
  expect(() => open({ server: address, exchange, token: 'pets' })).toThrow('exchange and token are two credentials');
  const headers = { Authorization: 'Bearer x' };
  expect(() => open({ server: address, caller_tokens: tokens, headers })).toThrow('leave out the Authorization header');
});

test('an address that only the document names has to be public', async () => {
  const { open } = await openApi();
  const t = await openTestGateway({ tools: [open({})], rules: RULES });
  const task = await (await t.room()).task({ agent: 'none' });
  const action = { kind: 'tool' as const, tool: 'getPet', arguments: { id: '1' } };
  const { act } = await t.send('tool.call', { task_id: task.id, action });
  expect(act).toMatchObject({ result: { status: 'error', error: 'the address has to be https' } });
});

test('a reference that leads back to itself stands for any value; one to another document is not followed', () => {
  const paths = {
    '/a': { post: { operationId: 'a', requestBody: { content: { 'application/json': { schema: { $ref: '#/s' } } } } } },
    '/b': {
      get: { operationId: 'b', parameters: [{ name: 'q', in: 'query', schema: { $ref: 'https://evil.example/x' } }] },
    },
    '/c': { get: { operationId: 'same' }, put: { operationId: 'same' } },
  };
  const tools = operationsOf({ openapi: '3.1.0', paths, s: { type: 'object', properties: { next: { $ref: '#/s' } } } });
  expect(tools.map(({ name, inputSchema }) => [name, inputSchema.properties])).toEqual([
    ['a', { body: { type: 'object', properties: { next: {} } } }],
    ['b', { q: {} }],
  ]);
});

test.each(['.', '..', '%2e%2e', ''])('a path argument %j is refused', (id) => {
  const operation = {
    path: '/pets/{id}',
    method: 'GET',
    parameters: [{ argument: 'id', name: 'id', in: 'path' }],
  } as unknown as Operation;
  expect(() => requestFor('https://api.example/v1', operation, { id })).toThrow('id is no part of a path');
  expect(requestFor('https://api.example/v1/', operation, { id: '../x?y#z' }).url).toBe(
    'https://api.example/v1/pets/..%2Fx%3Fy%23z',
  );
});
