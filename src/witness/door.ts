/**
 * `/witness`, for authenticated callers: our own signed head and proofs about our log, and a record of the heads that
 * other gateways send us. A head that does not extend the sender's last one is refused, and the answer contains the
 * last one.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Actor } from '../model/actions.ts';
import { position } from '../model/events.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { Deps, HttpHandler, Store } from '../ports/index.ts';
import { consistencyProof, inclusionProof } from '../receipt/merkle/proofs.ts';
import { lastLogHead, lastReceiptHead } from '../receipt/seal/checkpoints.ts';
import type { Jwks } from '../receipt/seal/public-keys.ts';
import { readBytes } from '../transport/http/body.ts';
import { judge } from './judge.ts';
import { appendHead, readHeads } from './record.ts';
import { WITNESS_PATH } from './send.ts';

export interface WitnessDoorDeps extends Pick<Deps, 'http' | 'log' | 'authenticate'> {
  readonly store: Store;
  /** Directory for the heads of other gateways. */
  readonly dir: string;
}

const LONGEST_BODY = 256 * 1024;

export function openWitnessDoor({ http, log, authenticate, store, dir }: WitnessDoorDeps): void {
  const handler: HttpHandler = (request, response) => {
    answer(request, response).catch((thrown) => {
      const { kind, message } = asFault(thrown);
      const status = STATUS.get(kind) ?? 500;
      if (status === 500) log.error({ err: thrown }, 'a witness could not be served');
      send(response, status, { code: kind, message: status === 500 ? 'internal error' : message });
    });
  };
  http.claim('witness', [{ path: `${WITNESS_PATH}/*`, handler }]);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bearer = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
    const actor = await authenticate(bearer, { door: 'witness', address: request.socket.remoteAddress });
    const url = new URL(request.url ?? '/', 'http://witness');
    const path = url.pathname.slice(WITNESS_PATH.length).replace(/\/+$/, '');
    const is = (method: string, wanted: string) => request.method === method && path === wanted;
    if (is('POST', '/heads')) return await keep(actor, request, response);
    require(actor, 'receipts:read');
    if (is('GET', '/heads')) {
      const heads = await readHeads(fileOf(url.searchParams.get('gateway') ?? actor.id));
      response.writeHead(200, { 'content-type': 'application/jsonl', 'cache-control': 'no-store' });
      response.end(heads.map((head) => `${JSON.stringify(head)}\n`).join(''));
      return;
    }
    if (is('GET', '/log')) {
      const [events, receipts] = [await lastLogHead(store), await lastReceiptHead(store)];
      return send(response, 200, { events: events ?? null, receipts: receipts ?? null });
    }
    const tree = await store.logTree.state();
    const size = count(url, 'to') ?? tree.size;
    if (size > tree.size) throw new Fault('invalid_request', `the tree has ${tree.size} leaves`);
    if (is('GET', '/log/consistency')) {
      return send(response, 200, await consistencyProof(count(url, 'from') ?? 0, size, store.logTree.nodes));
    }
    if (is('GET', '/log/inclusion')) {
      const at = position(url.searchParams.get('event') ?? '');
      if (at === undefined || tree.first === undefined)
        throw new Fault('invalid_request', 'name an event: ?event=evt_…');
      return send(response, 200, await inclusionProof(at - tree.first, size, store.logTree.nodes));
    }
    throw new Fault('not_found', `nothing is served at ${WITNESS_PATH}${path}`);
  }

  /** One at a time: two heads of one sender must not both extend the same one. */
  let turn: Promise<unknown> = Promise.resolve();
  async function keep(actor: Actor, request: IncomingMessage, response: ServerResponse): Promise<void> {
    require(actor, 'witness:write');
    const body = parsed(await readBytes(request, LONGEST_BODY));
    const kept = turn.then(async () => {
      const path = fileOf(actor.id);
      const last = (await readHeads(path)).at(-1);
      const judged = judge(last, body.head, body.keys, body.proof);
      if (judged.fits && !judged.known) await appendHead(path, body.head);
      return { last, judged };
    });
    turn = kept.catch(() => undefined);
    const { last, judged } = await kept;
    if (judged.fits) return send(response, 200, { kept: true });
    const { code, message } = judged;
    send(response, code === 'invalid' ? 400 : 409, {
      kept: false,
      code,
      message,
      ...(last && { size: last.size, last }),
    });
  }

  /** Named by a hash, because the sender's name may contain anything. */
  function fileOf(gateway: string): string {
    return join(dir, `${createHash('sha256').update(gateway).digest('hex').slice(0, 32)}.jsonl`);
  }
}

const STATUS: ReadonlyMap<string, number> = new Map([
  ['unauthenticated', 401],
  ['permission_denied', 403],
  ['invalid_request', 400],
  ['payload_too_large', 413],
  ['rate_limited', 429],
  ['not_found', 404],
]);

function require(actor: Actor, scope: string): void {
  if (actor.scopes.includes('*') || actor.scopes.includes(scope)) return;
  throw new Fault('permission_denied', `this needs the scope ${scope}`);
}

function count(url: URL, name: string): number | undefined {
  const text = url.searchParams.get(name);
  if (text === null) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Fault('invalid_request', `${name} has to be a number`);
  return Number(text);
}

type Posted = { head: Parameters<typeof appendHead>[1]; keys: Jwks; proof?: Parameters<typeof judge>[3] };

function parsed(bytes: Uint8Array): Posted {
  try {
    const body = JSON.parse(Buffer.from(bytes).toString('utf8')) as Posted;
    const { proof } = body;
    const keys =
      Array.isArray(body.keys?.keys) && body.keys.keys.every((key) => typeof key === 'object' && key !== null);
    if (keys && (proof === undefined || Array.isArray(proof?.path))) return body;
  } catch {}
  throw new Fault('invalid_request', 'send {"head": …, "keys": …, "proof"?: …}');
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}
