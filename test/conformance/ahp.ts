/**
 * AHP 2.4 against what its own implementation was recorded to do: decode vectors, a server over stdio and over HTTP, the
 * sessions of real clients, and how a client ends odd situations. `--data <dir>` plays other recordings of the same kinds.
 */
import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { clientChecks, clientDifferences } from './ahp/client.ts';
import { equal, expectAnswer, met, shapeOf } from './ahp/compare.ts';
import { expectDecision } from './ahp/differences.ts';
import { KEY, openPeer, type Peer } from './ahp/gateway.ts';
import { siblingChecks } from './ahp/siblings.ts';
import type { Check, Print } from './run.ts';

// biome-ignore lint/suspicious/noExplicitAny: recordings are looked into freely
type Recorded = any;

const OWN = new URL('../../fixtures/ahp/', import.meta.url).pathname;
const SHARED = new URL('../../../shared/data/ahp/', import.meta.url).pathname;

export async function main(options: readonly string[], print: Print): Promise<number> {
  const { values } = parseArgs({ args: [...options], options: { data: { type: 'string' } } });
  const dirs = values.data ? [`${values.data}/`] : [OWN, ...(existsSync(SHARED) ? [SHARED] : [])];
  const peer = await openPeer();
  let [passed, failed] = [0, 0];
  try {
    for await (const check of checksOf(dirs, peer)) {
      try {
        await check.run();
        passed += 1;
      } catch (cause) {
        failed += 1;
        print(`FAIL ${check.name}\n     ${cause instanceof Error ? cause.message : String(cause)}`);
      }
    }
  } finally {
    await peer.close();
  }
  for (const [{ name, why }, cases] of met) print(`differs on purpose: ${name} (${cases.length}): ${why}`);
  for (const difference of clientDifferences()) print(`differs on purpose: ${difference}`);
  print(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

async function* checksOf(dirs: readonly string[], peer: Peer): AsyncGenerator<Check> {
  for (const dir of dirs) {
    yield* vectors(dir);
    yield* lines(dir, peer);
    yield* requests(dir, peer);
    yield* captures(dir, peer);
    yield* clientChecks(read(`${dir}vectors/rust-client-outcomes.json`)?.outcomes ?? []);
  }
  if (dirs.includes(OWN)) yield* siblingChecks(peer);
}

/** Recordings of the reference implementation carry its language in their name; ours carry nothing. */
function read(path: string): Recorded {
  const found = [path, path.replace('/rust-', '/')].find((candidate) => existsSync(candidate));
  return found && JSON.parse(readFileSync(found, 'utf8'));
}

function* vectors(dir: string): Generator<Check> {
  for (const [index, vector] of (read(`${dir}vectors/decode-vectors.json`)?.vectors ?? []).entries()) {
    const { type, note, input, accepted, reserialized, not_distinguishable_in_javascript: same } = vector;
    if (same) continue;
    yield {
      name: `${type} ${index}, ${note}`,
      run() {
        let came: unknown;
        try {
          came = shapeOf(type)(input);
        } catch (cause) {
          if (accepted) throw cause;
          return;
        }
        if (!accepted) throw new Error('was read, and should have been refused');
        equal(came, reserialized);
      },
    };
  }
}

function* lines(dir: string, peer: Peer): Generator<Check> {
  for (const { case: name, sent, received } of read(`${dir}vectors/rust-server-cases.json`)?.cases ?? []) {
    yield {
      name: `stdio: ${name}`,
      async run() {
        const frame = spelledOut(sent, received);
        const came = await peer.line(typeof frame === 'string' ? frame : JSON.stringify(frame));
        expectAnswer(name, frame, received, came);
      },
    };
  }
}

/** `(101 pre_action events)` stands for a batch of them. */
function spelledOut(sent: Recorded, received: Recorded): Recorded {
  const many = typeof sent === 'string' ? /^\((\d+) (\w+) events\)$/.exec(sent) : null;
  if (!many) return sent;
  const event = { event_type: many[2], session_id: 's', agent_id: 'a', timestamp: 't', depth: 0, payload: {} };
  const events = Array.from({ length: Number(many[1]) }, () => event);
  return { jsonrpc: '2.0', id: received.id, method: 'ahp/batch', params: { events } };
}

function* requests(dir: string, peer: Peer): Generator<Check> {
  for (const { case: name, request, response } of read(`${dir}vectors/rust-http-server-cases.json`)?.cases ?? []) {
    yield {
      name: `http: ${name}`,
      async run() {
        const { method, path, headers } = request;
        const body = bodyOf(request.body);
        const came = await fetch(`${peer.url}${path}`, {
          method,
          headers: { ...headers, 'x-api-key': KEY },
          ...(body !== null && { body }),
        });
        const text = await came.text();
        const sent = jsonOf(body);
        const json = came.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : undefined;
        // What is not a message of the protocol is answered in plain text; paths and methods that the door has not, by the gateway.
        if (typeof response.body !== 'object' || response.body === null) {
          if (response.allow) equal(came.headers.get('allow'), response.allow);
          if (json === undefined || [404, 405].includes(response.status)) return equal(came.status, response.status);
        }
        equal(came.status, 200);
        expectAnswer(name, sent, Number.isInteger(sent?.id) ? undefined : response.body, json);
      },
    };
  }
}

function bodyOf(body: string | null): string | null {
  const size = /^\((\d+) bytes\)$/.exec(body ?? '');
  return size ? `"${'x'.repeat(Number(size[1]) - 2)}"` : body;
}

function jsonOf(body: string | null): Recorded {
  try {
    return JSON.parse(body ?? '');
  } catch {
    return undefined;
  }
}

/** Real clients' sessions, said again to us: each request is answered, each notification is not. */
function* captures(dir: string, peer: Peer): Generator<Check> {
  const path = `${dir}captures/rust-client-stdio.jsonl`.replace('/rust-', dir === OWN ? '/' : '/rust-');
  const frames: Recorded[] = existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    : [];
  for (const [index, { from, frame }] of frames.entries()) {
    if (from !== 'agent') continue;
    yield {
      name: `session over stdio, frame ${index}: ${frame.method} ${frame.params?.event_type ?? ''}`,
      run: async () => answered(frame, await peer.line(JSON.stringify(frame))),
    };
    yield {
      name: `the same session over WebSocket, frame ${index}: ${frame.method} ${frame.params?.event_type ?? ''}`,
      run: async () => answered(frame, await peer.frame(JSON.stringify(frame))),
    };
  }
  for (const [who, session] of Object.entries<Recorded>(read(`${dir}captures/rust-client-http.json`) ?? {})) {
    for (const [index, { body }] of (Array.isArray(session) ? session : []).entries()) {
      yield {
        name: `session over HTTP (${who}), request ${index}`,
        async run() {
          const came = await fetch(`${peer.url}/ahp`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'x-api-key': KEY },
            body: JSON.stringify(body),
          });
          equal(came.status, body.id === undefined ? 204 : 200);
          answered(body, body.id === undefined ? undefined : await came.json());
        },
      };
    }
  }
  const sockets = read(`${dir}captures/rust-client-websocket.json`);
  for (const [index, { text }] of (sockets?.first_frames ?? []).entries()) {
    yield {
      name: `session over WebSocket, frame ${index}`,
      run: async () => answered(JSON.parse(text), await peer.frame(text)),
    };
  }
  for (const [who, head] of Object.entries<Recorded>(sockets?.upgrade_requests ?? {})) {
    const credential = /'(.*)'/.exec(who)?.[1];
    yield {
      name: `upgrade with ${who}`,
      // A client without a credential is refused here; the recorded server let everyone in.
      run: async () => equal(await peer.upgrade(head, credential), credential === undefined ? 401 : 101),
    };
  }
}

const RESULTS: Readonly<Record<string, string>> = {
  'ahp/handshake': 'HandshakeResponse',
  'ahp/query': 'QueryResponse',
  'ahp/batch': 'BatchResponse',
};

function answered(frame: Recorded, came: Recorded): void {
  equal(came?.id, frame.id);
  if (frame.id === undefined) return;
  if (came.error) throw new Error(JSON.stringify(came.error));
  const result = RESULTS[frame.method];
  if (result) shapeOf(result)(came.result);
  else expectDecision(came.result, frame.params.event_type);
}
