/** An HTTP API as a tool server: its operations are tools, calls carry our credentials, and arguments lead nowhere else. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { writeBody } from '../../../adapters/openapi/client/body.ts';
import { type Operation, operationsOf } from '../../../adapters/openapi/client/operations.ts';
import { requestFor } from '../../../adapters/openapi/client/request.ts';
import { openapi } from '../../../adapters/openapi/index.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { PartContext } from '../../../src/ports/index.ts';
import { eventually } from '../../support/eventually.ts';
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
  const served = { text: DOCUMENT };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += String(piece);
    asked.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
    if (request.url === '/document') return void response.end(served.text);
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
  let now = Date.parse('2026-01-01T00:00:00Z');
  const clock = { now: () => new Date(now).toISOString() };
  const warned: string[] = [];
  const log = { info() {}, error() {}, warn: (_: object, text: string) => void warned.push(text) };
  const open = (config: object) =>
    openapi.parts.tools.open({ document, ...config }, { name: 'pets', secret, clock, log } as unknown as PartContext);
  const pass = (ms: number) => {
    now += ms;
  };
  return { asked, address, served, open, pass, warned, write: (text: string) => writeFile(document, text) };
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

const body = (content: JsonObject, required = true) => ({ requestBody: { required, content } });
const FORM = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    tags: { type: 'array', items: { type: 'string' } },
    extra: { type: 'object' },
  },
  required: ['name'],
};
const FILE = { type: 'string', format: 'binary' };
const BODIES = {
  openapi: '3.1.0',
  paths: {
    '/form': { post: { operationId: 'form', ...body({ 'application/x-www-form-urlencoded': { schema: FORM } }) } },
    '/multi': {
      post: {
        operationId: 'multi',
        ...body({
          'multipart/form-data': { schema: { ...FORM, properties: { ...FORM.properties, photo: FILE } } },
        }),
      },
    },
    '/text': { post: { operationId: 'text', ...body({ 'text/plain': { schema: {} } }) } },
    '/both': {
      post: { operationId: 'both', ...body({ 'text/plain': {}, 'application/vnd.pets+json': { schema: FORM } }) },
    },
    '/file': {
      post: {
        operationId: 'file',
        ...body({ 'multipart/form-data': { schema: { properties: { photo: FILE }, required: ['photo'] } } }),
      },
    },
  },
};

test('forms, fields of multipart bodies and plain text are written from the decided arguments', async () => {
  const { asked, address, open, write } = await openApi();
  await write(JSON.stringify(BODIES));
  const t = await openTestGateway({ tools: [open({ server: address })], rules: RULES });
  const task = await (await t.room()).task({ agent: 'none' });
  const call = async (tool: string, args: JsonObject) =>
    (await t.send('tool.call', { task_id: task.id, action: { kind: 'tool', tool, arguments: args } })).act;
  const pet = { name: 'Rex & Söhne', tags: ['a', 'b c'], extra: { n: 1 } };

  expect(await call('form', { body: pet })).toMatchObject({ kind: 'done', result: { status: 'ok' } });
  expect(asked.at(-1)?.headers['content-type']).toBe('application/x-www-form-urlencoded');
  expect([...new URLSearchParams(asked.at(-1)?.body)]).toEqual([
    ['name', 'Rex & Söhne'],
    ['tags', 'a'],
    ['tags', 'b c'],
    ['extra', '{"n":1}'],
  ]);

  expect(await call('multi', { body: pet })).toMatchObject({ kind: 'done', result: { status: 'ok' } });
  const type = String(asked.at(-1)?.headers['content-type']);
  const sent = await new Response(asked.at(-1)?.body, { headers: { 'content-type': type } }).formData();
  expect([...sent]).toEqual([
    ['name', 'Rex & Söhne'],
    ['tags', 'a'],
    ['tags', 'b c'],
    ['extra', '{"n":1}'],
  ]);

  expect(await call('text', { body: 'two\nlines' })).toMatchObject({ kind: 'done', result: { status: 'ok' } });
  expect(asked.at(-1)).toMatchObject({ body: 'two\nlines', headers: { 'content-type': 'text/plain; charset=utf-8' } });
  expect(await call('both', { body: pet })).toMatchObject({ kind: 'done', result: { status: 'ok' } });
  expect(JSON.parse(asked.at(-1)?.body ?? '')).toEqual(pet);

  // Nothing of these reaches the API: a text that is none, a field that is missing, a file.
  const before = asked.length;
  expect(await call('text', { body: { no: 'text' } })).toMatchObject({ decision: { code: 'invalid_arguments' } });
  expect(await call('form', { body: { tags: [] } })).toMatchObject({ decision: { code: 'invalid_arguments' } });
  expect(await call('file', { body: { photo: 'x' } })).toMatchObject({ decision: { code: 'invalid_arguments' } });
  expect(asked).toHaveLength(before);
  const inputs = operationsOf(BODIES).map(({ name, inputSchema }) => [name, inputSchema.properties]);
  expect(Object.fromEntries(inputs)).toMatchObject({ multi: { body: { properties: FORM.properties } }, file: {} });
  expect(JSON.stringify(inputs)).not.toContain('photo');
});

test('a value or a name cannot begin a field of its own in a multipart body', async () => {
  const value = 'x\r\n--tollbridge\r\ncontent-disposition: form-data; name="admin"\r\n\r\nyes';
  const fields = { note: value, 'a"; name="b\r\nx': '1' };
  const { type, text } = writeBody({ kind: 'multipart', type: 'multipart/form-data' }, fields);
  const sent = await new Response(text, { headers: { 'content-type': type } }).formData();
  expect([...sent.keys()]).toHaveLength(2);
  expect(sent.get('note')).toBe(value);
});

test('a changed file is read again; an operation that became another is refused until it is accepted', async () => {
  const { asked, address, open, pass, warned, write } = await openApi();
  const backend = open({ server: address });
  const t = await openTestGateway({ tools: [backend], rules: RULES });
  const task = await (await t.room()).task({ agent: 'none' });
  const call = async (tool: string, args: JsonObject) =>
    (await t.send('tool.call', { task_id: task.id, action: { kind: 'tool', tool, arguments: args } })).act;
  const announced: string[] = [];
  const stop = backend.watch?.((list) => void announced.push(list));
  onTestFinished(() => stop?.());
  expect(await call('getPet', { id: '1' })).toMatchObject({ kind: 'done' });
  expect(await call('post_pets', { body: { name: 'Rex' } })).toMatchObject({ kind: 'done' });

  // The same name, description and arguments, and another request.
  await write(DOCUMENT.replace('/pets/{id}:', '/secrets/{id}:'));
  pass(1_000);
  expect(await call('getPet', { id: '1' })).toMatchObject({
    kind: 'refused',
    decision: { code: 'definition_changed' },
  });
  expect(await call('post_pets', { body: { name: 'Rex' } })).toMatchObject({ kind: 'done' });
  expect(announced).toEqual(['tools']);
  expect(asked.map(({ url }) => url)).toEqual(['/v1/pets/1', '/v1/pets', '/v1/pets']);

  // A document that cannot be read does not replace the last one, and one that is again what it was is used again.
  await write('openapi: [');
  pass(1_000);
  expect(await call('post_pets', { body: { name: 'Rex' } })).toMatchObject({ kind: 'done' });
  expect(warned).toEqual(['an OpenAPI document cannot be read again; the last one is used']);
  await write(`${DOCUMENT}\n`);
  pass(1_000);
  expect(await call('getPet', { id: '2' })).toMatchObject({ kind: 'done' });
});

test('a document at an address is read again after the interval, while calls use the last one', async () => {
  const { asked, address, served, open, pass } = await openApi();
  const at = new URL('/document', address).href;
  const backend = open({ server: address, document: at, refresh_ms: 60_000 });
  const names = async () => (await backend.list()).map(({ name }) => name);
  const reads = () => asked.filter(({ url }) => url === '/document').length;
  expect(await names()).toContain('removePet');
  served.text = DOCUMENT.replace('removePet', 'freePet');
  pass(59_000);
  expect(await names()).toContain('removePet');
  expect(reads()).toBe(1);
  pass(1_000);
  await names();
  await eventually(async () => (await names()).includes('freePet'), 'the new document');
  expect(reads()).toBe(2);
});
