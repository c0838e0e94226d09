/** A house that decides as the recorded server's handler did: allows, blocks `rm`, and breaks when told to. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type AhpConfig, settingsOf } from '../../../adapters/ahp/config.ts';
import { createHarness } from '../../../adapters/ahp/harness.ts';
import { ahp } from '../../../adapters/ahp/index.ts';
import { LOCAL_AGENT } from '../../../adapters/ahp/server.ts';
import { serveLines } from '../../../adapters/ahp/streams.ts';
import { openHouse } from '../../../src/compose.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { Json } from '../../../src/model/schema.ts';
import type { Adapter, Deps, PolicyEngine } from '../../../src/ports.ts';
import { createHttpHost } from '../../../src/wire/http.ts';
import { readLines } from '../../../src/wire/ndjson.ts';

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
  /** Sends one line and hands over what comes back, if anything does. */
  line(text: string): Promise<Json | undefined>;
  close(): Promise<void>;
}

export async function openPeer(config: AhpConfig = {}): Promise<Peer> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-ahp-'));
  const ids = createIds();
  const load = async () => ({ rules: RULES, files: [] });
  const house = await openHouse({ dataDir: dir, policy: { load }, engines: [breaking], ids });
  await house.start();
  const home = { object: 'workspace' as const, body: { name: 'w', root: 'file:///w' } };
  await house.bridge.submit({ kind: 'resource.create', actor: OWNER, body: home });

  const http = createHttpHost({ requestId: () => ids.next('req'), log: QUIET, graceMs: 100 });
  const deps: Deps = {
    log: QUIET,
    clock: systemClock,
    ids,
    http,
    authenticate: async (bearer) => {
      if (bearer !== KEY) throw new Error('unexpected credential');
      return { id: 'agent:remote', kind: 'agent', scopes: ['*'] };
    },
    jwks: () => ({}),
    secret: async () => '',
  };
  const settings = settingsOf(config);
  const door = await (ahp as Adapter<AhpConfig>).door!(config, deps).open(house.bridge);
  const { url } = await http.listen();

  const harness = createHarness(house.bridge, settings, deps);
  const input = new PassThrough();
  const output = new PassThrough();
  const serving = serveLines(harness, { input, output }, { actor: LOCAL_AGENT, log: QUIET, limit: settings.lineLimit });
  const heard: Json[] = [];
  let wake = () => {};
  const reading = (async () => {
    for await (const line of readLines(output, { limit: settings.lineLimit })) {
      heard.push(JSON.parse(line) as Json);
      wake();
    }
  })();

  async function answer(ms: number): Promise<Json | undefined> {
    const deadline = Date.now() + ms;
    while (heard.length === 0 && Date.now() < deadline) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(1, deadline - Date.now()));
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return heard.shift();
  }

  return {
    url,
    async line(text) {
      input.write(`${text}\n`);
      return await answer(mayBeAnswered(text) ? PATIENCE_MS : QUIET_MS);
    },
    async close() {
      input.end();
      await serving;
      output.end();
      await reading;
      await harness.close();
      await door.close();
      await http.close();
      await house.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const PATIENCE_MS = 9_000;
/** What is not a request is given a moment to be answered all the same. */
const QUIET_MS = 40;

function mayBeAnswered(text: string): boolean {
  return /"id"\s*:/.test(text) && /"params"/.test(text) && !text.startsWith('[');
}
