/** The internal link: who may use it, for what, how often, and what happens to a request whose holder does not answer. */
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import { projector } from '../../../src/core/events/projector.ts';
import type { Logger } from '../../../src/ports/index.ts';
import { createHopTokens, HOP_HEADER } from '../../../src/replicas/hop-token.ts';
import { openReplicas, type Replicas } from '../../../src/replicas/replicas.ts';
import { createSqliteStore } from '../../../src/store/sqlite/index.ts';
import { bearerOf } from '../../../src/transport/http/bearer.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { eventually } from '../../support/eventually.ts';

const CALLER = { authorization: 'Bearer secret-of-the-caller' };
const ASKED = { method: 'POST', url: '/thing', headers: CALLER };

interface Node {
  readonly url: string;
  readonly replicas: Replicas;
  readonly seen: string[];
  /** Requests whose body began to be read, and those that broke off. */
  readonly begun: string[];
  readonly gone: string[];
  readonly logged: string[];
}

/** A port whose door answers with its own name, and says what it was asked. */
async function aReplica(name: string, dir: string, secret = 'shared'): Promise<Node> {
  const logged: string[] = [];
  const note = (...said: unknown[]) =>
    void logged.push(JSON.stringify(said, (_, value) => (value instanceof Error ? String(value) : value)));
  const log: Logger = { info: note, warn: note, error: note };
  const ids = createIds();
  const store = await createSqliteStore({ path: join(dir, 'log.db'), clock: systemClock, projector });
  const host = createHttpHost({ requestId: () => ids.next('req'), log });
  const replicas = await openReplicas({
    store,
    commit: store.commit,
    ids,
    clock: systemClock,
    log,
    directory: dir,
    secret,
    serve: host.serve,
  });
  host.join(replicas.link);
  const seen: string[] = [];
  const begun: string[] = [];
  const gone: string[] = [];
  host.claim('thing', [
    {
      path: '/thing/*',
      names: [{ header: 'thing-id' }],
      async handler(incoming, response) {
        let body = '';
        begun.push(name);
        try {
          for await (const chunk of incoming.setEncoding('utf8')) body += chunk;
        } catch {
          gone.push(name);
          return;
        }
        seen.push(`${incoming.method} ${bearerOf(incoming)} ${incoming.headers[HOP_HEADER] ?? 'no token'} ${body}`);
        response.writeHead(200, { 'content-type': 'text/plain', 'x-name': name });
        response.end(`${name} heard ${body}`);
      },
    },
  ]);
  const { url } = await host.listen();
  onTestFinished(async () => {
    await host.close();
    await replicas.close();
    await store.close();
  });
  return { url, replicas, seen, begun, gone, logged };
}

function aDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'tb-link-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

interface Got {
  readonly status: number;
  readonly text: string;
}

function ask(where: string | { socketPath: string }, headers: Record<string, string>, body = 'hello'): Promise<Got> {
  const { hostname, port } = typeof where === 'string' ? new URL(where) : {};
  const to = typeof where === 'string' ? { hostname, port } : where;
  return new Promise((resolve, reject) => {
    const sent = request({
      ...to,
      path: '/thing',
      method: 'POST',
      headers: { ...CALLER, host: '127.0.0.1', ...headers },
      agent: false,
    });
    sent.on('error', reject);
    sent.on('response', async (response: IncomingMessage) => {
      let text = '';
      for await (const chunk of response.setEncoding('utf8')) text += chunk;
      resolve({ status: response.statusCode ?? 0, text });
    });
    sent.end(body);
  });
}

const hostOf = (url: string) => ({ host: new URL(url).host });
const socketOf = (dir: string, { replicas }: Node) => ({ socketPath: join(dir, 'replicas', `${replicas.id}.sock`) });

test('a request for a thing of another replica is answered by that one, with the credentials of its caller', async () => {
  const dir = aDirectory();
  const [one, two] = [await aReplica('one', dir), await aReplica('two', dir)];
  const got = await ask(one.url, { ...hostOf(one.url), 'thing-id': `x${two.replicas.link.mark}` });
  expect(got).toEqual({ status: 200, text: 'two heard hello' });
  expect(two.seen).toEqual(['POST secret-of-the-caller no token hello']);
  expect(one.seen).toEqual([]);
});

test('names without a mark, with our own and with that of a replica nobody knows are served where they arrive', async () => {
  const dir = aDirectory();
  const [one, two] = [await aReplica('one', dir), await aReplica('two', dir)];
  for (const id of ['x', `x${one.replicas.link.mark}`, 'x~01ARZ3NDEKTSV4RRFFQ69G5FAV', 'x~__proto__'])
    expect(await ask(one.url, { ...hostOf(one.url), 'thing-id': id })).toEqual({
      status: 200,
      text: 'one heard hello',
    });
  expect(two.seen).toEqual([]);
});

test('a token that a client makes up is neither believed nor passed on', async () => {
  const dir = aDirectory();
  const [one, two] = [await aReplica('one', dir), await aReplica('two', dir)];
  const headers = { ...hostOf(one.url), 'thing-id': `x${two.replicas.link.mark}`, [HOP_HEADER]: 'made-up' };
  expect(await ask(one.url, headers)).toEqual({ status: 200, text: 'two heard hello' });
  expect(two.seen).toEqual(['POST secret-of-the-caller no token hello']);
});

test('the link serves nobody without a token, with a made-up one, or with one of another key', async () => {
  const dir = aDirectory();
  const one = await aReplica('one', dir);
  const other = createHopTokens({ id: 'replica_other', secret: 'another secret', now: Date.now });
  const foreign = await other.sign({ from: 'replica_other', requestId: 'r' }, one.replicas.id, ASKED);
  for (const token of [undefined, 'made-up', foreign, foreign.replace(/\.[^.]*$/, '.')]) {
    const got = await ask(socketOf(dir, one), token === undefined ? {} : { [HOP_HEADER]: token });
    expect(got.status).toBe(401);
  }
  expect(one.seen).toEqual([]);
  expect(one.logged.join('\n')).not.toContain(foreign);
  expect(one.logged.join('\n')).not.toContain('secret-of-the-caller');
  expect(one.logged).toHaveLength(4);
});

test('a token is good once, for one request, at one replica', async () => {
  const dir = aDirectory();
  const one = await aReplica('one', dir);
  const { sign } = createHopTokens({ id: 'replica_two', secret: 'shared', now: Date.now });
  const hop = { from: 'replica_two', requestId: 'req_1' };
  const token = await sign(hop, one.replicas.id, ASKED);
  expect((await ask(socketOf(dir, one), { [HOP_HEADER]: token })).status).toBe(200);
  expect((await ask(socketOf(dir, one), { [HOP_HEADER]: token })).status).toBe(401);
  const wrong = [
    await sign(hop, 'replica_three', ASKED),
    await sign(hop, one.replicas.id, { ...ASKED, url: '/other' }),
    await sign(hop, one.replicas.id, { ...ASKED, method: 'DELETE' }),
    await sign(hop, one.replicas.id, { ...ASKED, headers: { authorization: 'Bearer of another' } }),
    await sign({ ...hop, from: one.replicas.id }, one.replicas.id, ASKED),
  ];
  for (const each of wrong) expect((await ask(socketOf(dir, one), { [HOP_HEADER]: each })).status).toBe(401);
  expect(one.seen).toHaveLength(1);
});

test('a token that waited is refused: a replica that was paused acts on nothing that was given up meanwhile', async () => {
  let now = 1_700_000_000_000;
  const clock = () => now;
  const from = createHopTokens({ id: 'replica_a', secret: 'shared', now: clock });
  const to = createHopTokens({ id: 'replica_b', secret: 'shared', now: clock });
  const token = await from.sign({ from: 'replica_a', requestId: 'r', address: '192.0.2.1' }, 'replica_b', ASKED);
  now += 30_000;
  await expect(to.verify(token, ASKED)).rejects.toThrow('the token is not valid here and now');
  now -= 30_000;
  expect(await to.verify(token, ASKED)).toEqual({ from: 'replica_a', requestId: 'r', address: '192.0.2.1' });
});

test('a request is handed on once: one that came over the link stays, whatever it names', async () => {
  const dir = aDirectory();
  const [one, two] = [await aReplica('one', dir), await aReplica('two', dir)];
  const { sign } = createHopTokens({ id: 'replica_x', secret: 'shared', now: Date.now });
  const token = await sign({ from: 'replica_x', requestId: 'r' }, one.replicas.id, ASKED);
  const headers = { [HOP_HEADER]: token, 'thing-id': `x${two.replicas.link.mark}` };
  expect(await ask(socketOf(dir, one), headers)).toEqual({ status: 200, text: 'one heard hello' });
  expect(two.seen).toEqual([]);
});

test('replicas with other keys do not serve each other', async () => {
  const dir = aDirectory();
  const [one, two] = [await aReplica('one', dir), await aReplica('two', dir, 'another secret')];
  const got = await ask(one.url, { ...hostOf(one.url), 'thing-id': `x${two.replicas.link.mark}` });
  expect(got.status).toBe(401);
  expect(two.seen).toEqual([]);
});

test('what a replica that is gone held is served by the one that is asked, and the row of the dead one is removed', async () => {
  const dir = aDirectory();
  const [one, two] = [await aReplica('one', dir), await aReplica('two', dir)];
  const { mark } = two.replicas.link;
  await two.replicas.close();
  expect(await ask(one.url, { ...hostOf(one.url), 'thing-id': `x${mark}` })).toEqual({
    status: 200,
    text: 'one heard hello',
  });
});

/** A process that is alive for the others, and answers on its link as it is told to. Returns the mark of what it holds. */
async function anotherHolder(dir: string, connected: (socket: Socket) => void): Promise<string> {
  const store = await createSqliteStore({ path: join(dir, 'log.db'), clock: systemClock, projector });
  const listener = createServer(connected);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const id = 'replica_01ARZ3NDEKTSV4RRFFQ69G5FAV';
  const lease = await store.lease(`replica:${id}`);
  const row = {
    id,
    object: 'replica',
    created_at: '',
    updated_at: '',
    address: `tcp:127.0.0.1:${(listener.address() as AddressInfo).port}`,
  };
  await store.commit({
    decide: () => ({
      events: [
        {
          event: 'vendor.tollbridge.resource_created',
          resource: { object: 'replica', id },
          workspace_id: null,
          actor: 'bridge',
          payload: { resource: row },
        },
      ],
    }),
  });
  const open = new Set<Socket>();
  listener.on('connection', (socket) => open.add(socket.on('error', () => {})));
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    listener.close();
    await lease?.close();
    await store.close();
  });
  return '~01ARZ3NDEKTSV4RRFFQ69G5FAV';
}

test('a replica that listens and does not answer costs its callers an answer that says so, not a yes and not for ever', async () => {
  const dir = aDirectory();
  const one = await aReplica('one', dir);
  // As a process that was stopped: its socket takes bytes, and its lease is held. When it goes on, it finds what it was sent.
  let sent = '';
  const mark = await anotherHolder(dir, (socket) => socket.on('data', (bytes) => (sent += bytes)));
  const got = await ask(one.url, { ...hostOf(one.url), 'thing-id': `x${mark}` });
  expect(got.status).toBe(503);
  expect(JSON.parse(got.text).error.message).toBe('the replica that holds this does not answer; try again');
  expect(one.seen).toEqual([]);
  expect(sent).toContain('POST /thing');
  expect(sent).not.toContain('hello');
});

test('a request that its holder did not confirm is asked again, and one that it did is not', async () => {
  const dir = aDirectory();
  const one = await aReplica('one', dir);
  const bodies: string[] = [];
  let count = 0;
  const mark = await anotherHolder(dir, (socket) => {
    count += 1;
    const nth = count;
    socket.on('data', (bytes) => {
      const text = String(bytes);
      // As a replica that is about to end, or a connection that it had closed already.
      if (nth === 1) return socket.destroy();
      if (text.startsWith('POST')) return socket.write('HTTP/1.1 102 Processing\r\n\r\n');
      bodies.push(text);
      if (nth === 2) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      else socket.destroy();
    });
  });
  const headers = { ...hostOf(one.url), 'thing-id': `x${mark}` };
  expect(await ask(one.url, headers)).toEqual({ status: 200, text: 'ok' });
  expect([count, bodies]).toEqual([2, ['hello']]);
  const broken = await ask(one.url, headers);
  expect(broken.status).toBe(503);
  expect(JSON.parse(broken.text).error.message).toMatch(/broke off; whether the request had an effect is not known/);
  expect([count, bodies, one.seen]).toEqual([3, ['hello', 'hello'], []]);
});

test('a caller that hangs up is gone for the holder too', async () => {
  const dir = aDirectory();
  const [one, two] = [await aReplica('one', dir), await aReplica('two', dir)];
  const { hostname, port, host } = new URL(one.url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /thing HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer a\r\nthing-id: x${two.replicas.link.mark}\r\ncontent-length: 10\r\n\r\nhalf`,
  );
  await eventually(() => two.begun.length === 1, 'the holder to read the body');
  socket.destroy();
  await eventually(() => two.gone.length === 1, 'the holder to notice');
  expect(two.seen).toEqual([]);
});

test('a name that clients choose is held by the first replica that asks, and by the next one when that is gone', async () => {
  const dir = aDirectory();
  const [one, two, three] = [await aReplica('one', dir), await aReplica('two', dir), await aReplica('three', dir)];
  const marks = [one, two, three].map(({ replicas }) => replicas.link.mark);
  expect(await one.replicas.hold('session a')).toBe(marks[0]);
  expect(await two.replicas.hold('session a')).toBe(marks[0]);
  expect(await two.replicas.hold('session b')).toBe(marks[1]);
  await one.replicas.close();
  const both = await Promise.all([two.replicas.hold('session a'), three.replicas.hold('session a')]);
  expect(new Set(both).size).toBe(1);
  expect(marks.slice(1)).toContain(both[0]);
  expect(await one.replicas.hold('session c').catch(({ kind }: { kind: string }) => kind)).toBe('conflict');
});
