/**
 * What an act leaves behind: how much the database grows with each allowed tool call over MCP (`bytes-call`) and each task of an A2A
 * peer (`bytes-task`), with events, rows, receipts, indexes and the leaves of the log's tree, against the bodies of its request and its
 * answer.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import { growLogTree } from '../../src/receipt/merkle/log-tree.ts';
import { createSqliteStore } from '../../src/store/sqlite/index.ts';
import type { A2aReport, A2aWanted } from '../a2a/load.ts';
import { startLoad, startOurs } from '../mcp/side.ts';
import type { Measured } from '../run.ts';
import { type Started, startSide } from '../sides/process.ts';

export const name = 'bytes';
export const names = ['bytes-call', 'bytes-task'] as const;

/** Clients at once; enough work for pages that are not full yet not to matter. */
const CLIENTS = 8;
const CALLS = 1_000;
const ROUND_MS = 300;
const TASKS = 300;
const AGAINST = 'the bodies of the request and of its answer';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const round = (value: number) => Number(value.toFixed(2));

export async function run(wanted: string = name): Promise<readonly Measured[]> {
  const figures: Measured[] = [];
  if (wanted !== 'bytes-task') figures.push(await perCall());
  if (wanted !== 'bytes-call') figures.push(await perTask());
  return figures;
}

async function perCall(): Promise<Measured> {
  const echo = await startSide([here('../mcp/echo.js'), '--http']);
  const ours = await startOurs({ http: { url: `http://127.0.0.1:${echo.port}/mcp` } });
  const load = startLoad();
  try {
    const token = ours.token ? { token: ours.token } : {};
    const target = { name: 'ours', port: ours.port, path: '/mcp/http', connections: CLIENTS, ...token };
    await load.open({ ...target, era: 'legacy' });
    await load.run('ours', ROUND_MS);
    const before = await stored(ours);
    let calls = 0;
    while (calls < CALLS) calls += (await load.run('ours', ROUND_MS)).calls;
    const after = await stored(ours);
    const params = { name: 'echo', arguments: { text: 'call 1000' } };
    const request = { jsonrpc: '2.0', id: 1_000, method: 'tools/call', params };
    const answer = { jsonrpc: '2.0', id: 1_000, result: { content: [{ type: 'text', text: 'call 1000' }] } };
    return figureOf('bytes-call', calls, { before, after }, JSON.stringify(request) + JSON.stringify(answer));
  } finally {
    load.close();
    ours.close();
    echo.close();
  }
}

async function perTask(): Promise<Measured> {
  const ours = await startSide([here('../a2a/ours.js'), '3']);
  const child = fork(here('../a2a/load.js'));
  const parts = [{ text: 'look at the plan and say what is missing' }];
  const params = { message: { messageId: 'm', role: 'ROLE_USER', parts } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
  const address = { port: ours.port, path: '/a2a/talker', token: ours.token ?? '' };
  const send = async (requests: number) => {
    const headers = { 'a2a-version': '1.0' };
    const wanted: A2aWanted = { ...address, body, headers, callers: CLIENTS, requests };
    const report = await new Promise<A2aReport>((resolve) => {
      child.once('message', resolve);
      child.send(wanted);
    });
    if (report.bad > 0) throw new Error(`${report.bad} requests were refused, or their work failed`);
  };
  try {
    await send(TASKS / 3);
    const before = await stored(ours);
    await send(TASKS);
    const after = await stored(ours);
    const headers = {
      authorization: `Bearer ${address.token}`,
      'a2a-version': '1.0',
      'content-type': 'application/json',
    };
    const url = `http://127.0.0.1:${ours.port}${address.path}`;
    const answer = await (await fetch(url, { method: 'POST', headers, body })).text();
    return figureOf('bytes-task', TASKS, { before, after }, body + answer);
  } finally {
    child.kill();
    ours.close();
  }
}

/** Bytes of pages, but for `events`. */
interface Stored {
  /** The whole file: what follows and the rest, resources, locations and idempotency keys among it. */
  readonly bytes: number;
  readonly events: number;
  readonly event: number;
  readonly receipt: number;
  readonly row: number;
  readonly index: number;
  readonly leaf: number;
}

const ROWS = ['sessions', 'tasks', 'messages', 'outcomes', 'runs', 'tallies', 'rows'];

/** The file once all of it is there: the tree over the log is grown to its end, and the write-ahead log is copied into the file. */
async function stored({ log = '' }: Started): Promise<Stored> {
  const clock = { now: () => new Date().toISOString() };
  const store = await createSqliteStore({ path: log, clock, projector: { touches: () => [], apply: () => [] } });
  await growLogTree(store);
  await store.close();
  const db = new Database(log, { readonly: true });
  const one = (sql: string) => Number((db.prepare(sql).raw().get() as unknown[])[0]);
  try {
    const pages = new Map(
      db.prepare('SELECT name, sum(pgsize) FROM dbstat GROUP BY name').raw().all() as [string, number][],
    );
    const of = (...names: string[]) => names.reduce((sum, name) => sum + (pages.get(name) ?? 0), 0);
    return {
      bytes: [...pages.values()].reduce((sum, bytes) => sum + bytes, 0),
      events: one('SELECT count(*) FROM events'),
      event: of('events', 'words'),
      receipt: of('receipts', 'tree_nodes'),
      row: of(...ROWS),
      index: one(`SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE type = 'index')`),
      leaf: of('log_nodes'),
    };
  } finally {
    db.close();
  }
}

function figureOf(
  bench: string,
  count: number,
  { before, after }: { readonly before: Stored; readonly after: Stored },
  crossed: string,
): Measured {
  const each = (of: keyof Stored) => round((after[of] - before[of]) / count);
  return {
    bench,
    ratio: round((after.bytes - before.bytes) / count / Buffer.byteLength(crossed)),
    against: AGAINST,
    bytes_each: each('bytes'),
    events_each: each('events'),
    event_bytes_each: each('event'),
    receipt_bytes_each: each('receipt'),
    row_bytes_each: each('row'),
    index_bytes_each: each('index'),
    leaf_bytes_each: each('leaf'),
    crossed_bytes: Buffer.byteLength(crossed),
  };
}
