/** A gateway that decides as the recorded server's handler did: allows, blocks `rm`, and breaks when asked to. */
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { WebSocket } from 'ws';
import { type AhpConfig, settingsOf } from '../../../adapters/ahp/config.ts';
import { ahp } from '../../../adapters/ahp/index.ts';
import { LOCAL_AGENT } from '../../../adapters/ahp/server/door.ts';
import { createHarness } from '../../../adapters/ahp/server/harness.ts';
import { serveLines } from '../../../adapters/ahp/server/streams.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Json } from '../../../src/model/schema.ts';
import type { Deps, PolicyEngine } from '../../../src/ports/index.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { readLines } from '../../../src/transport/ndjson/ndjson.ts';

const RULES = `
- { id: no-rm, when: { kind: tool, tool: rm }, then: block, say: "no" }
- { id: tools, when: { kind: tool }, then: allow }
- { id: confirmations, when: { kind: elicit }, then: allow }
`;
const OWNER: Actor = { id: 'owner', kind: 'person', scopes: ['*'] };
const QUIET = { info() {}, warn() {}, error() {} };
export const KEY = 'conformance-key';

const breaking: PolicyEngine = {
  name: 'breaking',
  async decide({ arguments: args }) {
    if (args.fail === true) throw new Error('policy engine down');
    return { verdict: 'allow', reason: 'nothing against it', code: 'no_objection', engine: 'breaking' };
  },
};

export interface Peer {
  readonly url: string;
  /** Sends one line and hands over what comes back, if anything does; what is to be answered is waited for longer. */
  line(text: string, answered?: boolean): Promise<Json | undefined>;
  /** The same over a WebSocket. */
  frame(text: string): Promise<Json | undefined>;
  /** The status that an upgrade with exactly this head is answered with, when this credential holds. */
  upgrade(head: readonly string[], credential: string | undefined): Promise<number>;
  close(): Promise<void>;
}

export async function openPeer(config: AhpConfig = {}): Promise<Peer> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-ahp-'));
  const ids = createIds();
  const load = async () => ({ rules: RULES, files: [] });
  const runtime = await openCoreRuntime({ dataDir: dir, policy: { load }, engines: [breaking], ids });
  await runtime.start();
  const home = { object: 'workspace' as const, body: { name: 'w', root: 'file:///w' } };
  await runtime.bridge.submit({ kind: 'resource.create', actor: OWNER, body: home });

  const http = createHttpHost({ requestId: () => ids.next('req'), log: QUIET, graceMs: 100 });
  /** A second credential that holds for the moment. */
  let also: string | undefined;
  const deps: Deps = {
    log: QUIET,
    clock: systemClock,
    ids,
    http,
    authenticate: async (bearer) => {
      if (bearer !== KEY && (also === undefined || bearer !== also))
        throw new Fault('unauthenticated', 'the token is not valid');
      return { id: 'agent:remote', kind: 'agent', scopes: ['*'] };
    },
    jwks: () => ({}),
    secret: async () => '',
  };
  const settings = settingsOf(config);
  const door = await ahp.parts.door.open(config, { ...deps, name: 'ahp' }).open(runtime.bridge);
  const { url } = await http.listen();

  const harness = createHarness(runtime.bridge, settings, deps);
  const input = new PassThrough();
  const output = new PassThrough();
  const serving = serveLines(harness, { input, output }, { actor: LOCAL_AGENT, log: QUIET, limit: settings.lineLimit });
  const answers = createAnswers();
  const reading = (async () => {
    for await (const line of readLines(output, { limit: settings.lineLimit })) answers.add(JSON.parse(line) as Json);
  })();
  const framed = createAnswers();
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ahp?existing=1&api_key=${KEY}`);
  socket.on('message', (data) => framed.add(JSON.parse(String(data)) as Json));
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve());
    socket.once('error', reject);
  });

  return {
    url,
    async line(text, answered = mayBeAnswered(text)) {
      input.write(`${text}\n`);
      return await answers.next(answered ? TIMEOUT_MS : QUIET_MS);
    },
    async frame(text) {
      socket.send(text);
      return await framed.next(mayBeAnswered(text) ? TIMEOUT_MS : QUIET_MS);
    },
    async upgrade(head, credential) {
      also = credential;
      const { hostname, port } = new URL(url);
      const raw = connect(Number(port), hostname);
      const own = head.map((line) => (/^host:/i.test(line) ? `Host: ${hostname}:${port}` : line));
      raw.write(`${own.join('\r\n')}\r\n\r\n`);
      const status = await new Promise<number>((resolve, reject) => {
        raw.once('data', (chunk) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(String(chunk))?.[1])));
        raw.once('error', reject);
      });
      raw.destroy();
      return status;
    },
    async close() {
      socket.terminate();
      input.end();
      await serving;
      output.end();
      await reading;
      await harness.close();
      await door.close();
      await http.close();
      await runtime.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Answers in the order in which they came, for the check that waits for the next one. */
function createAnswers() {
  const received: Json[] = [];
  let wake = () => {};
  return {
    add(one: Json): void {
      received.push(one);
      wake();
    },
    async next(ms: number): Promise<Json | undefined> {
      const deadline = Date.now() + ms;
      while (received.length === 0 && Date.now() < deadline) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, Math.max(1, deadline - Date.now()));
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      return received.shift();
    },
  };
}

const TIMEOUT_MS = 9_000;
/** What is not a request is given a moment to be answered all the same. */
const QUIET_MS = 40;

function mayBeAnswered(text: string): boolean {
  return /"id"\s*:/.test(text) && /"params"/.test(text) && !text.startsWith('[');
}
