/**
 * What a decision costs an agent: `pre_action` to our harness, durable log and all, against a null harness that answers a
 * constant over the same transport and the same reading and writing code. One agent asks, one question after the other
 * for the median, then many at once for the rate; the harnesses take turns in one process. A third one answers the same
 * constant after a bare write and sync of one line: what durability alone costs on this machine.
 */
import { type FileHandle, mkdtemp, open as openFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type Asking, createAsking } from '../adapters/ahp/asking.ts';
import { settingsOf } from '../adapters/ahp/config.ts';
import { createHarness, type Harness } from '../adapters/ahp/harness.ts';
import { type Link, lineLink, openLink } from '../adapters/ahp/links.ts';
import { LOCAL_AGENT, openHarnessDoor, serveUnix } from '../adapters/ahp/server.ts';
import { serveLines } from '../adapters/ahp/streams.ts';
import type { AhpEvent } from '../adapters/ahp/translate.ts';
import { openHouse, SERVING_ROOM } from '../src/compose.ts';
import { createIds, systemClock } from '../src/core/clock.ts';
import type { Actor } from '../src/model/actions.ts';
import type { Closable, Deps } from '../src/ports.ts';
import { createHttpHost } from '../src/wire/http.ts';
import type { Measured } from './run.ts';

export const names = ['ahp-stdio', 'ahp-unix', 'ahp-http', 'ahp-ws'] as const;
export const name = 'ahp';

const SECONDS = 4;
const ROUND = 50;
const AT_ONCE = 64;
const QUIET = { info() {}, warn() {}, error() {} };
const OWNER: Actor = { id: 'owner', kind: 'person', scopes: ['*'] };
const RULES = '- { id: tools, when: { kind: tool }, then: allow }';

export async function run(wanted: string = 'ahp'): Promise<readonly Measured[]> {
  const figures: Measured[] = [];
  for (const each of wanted === 'ahp' ? names : [wanted]) figures.push(await measure(each as (typeof names)[number]));
  return figures;
}

async function measure(bench: (typeof names)[number]): Promise<Measured> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-bench-'));
  const ids = createIds();
  const house = await openHouse({
    dataDir: dir,
    roomBytes: SERVING_ROOM,
    ids,
    policy: { load: async () => ({ rules: RULES, files: [] }) },
  });
  const closing: Closable[] = [];
  try {
    const body = { object: 'workspace' as const, body: { name: 'w', root: 'file:///w' } };
    await house.bridge.submit({ kind: 'resource.create', actor: OWNER, body });
    const settings = settingsOf({});
    const ours = createHarness(house.bridge, settings, { log: QUIET, ids, clock: systemClock });
    closing.push(ours);
    const open = async (harness: Harness, part: string) => {
      const link = await LINKS[bench](harness, join(dir, part), closing);
      const asking = createAsking(link, () => ids.next('q'), 10_000);
      closing.unshift(asking);
      await asking.handshake({ session_id: 's', agent_id: 'a' });
      return asking;
    };
    const file = await openFile(join(dir, 'floor.log'), 'a');
    closing.push(file as unknown as Closable);
    const contenders = {
      ours: await open(ours, 'ours.sock'),
      theirs: await open(constant(), 'null.sock'),
      floor: await open(constant(file), 'floor.sock'),
    };
    const medians = await oneByOne(contenders);
    const rates = await manyAtOnce(contenders);
    const round = (value: number) => Number(value.toFixed(3));
    return {
      bench,
      ratio: round(medians.ours / medians.theirs),
      against: 'a harness that answers a constant on the same transport; p50 of one question after the other',
      ours_p50_ms: round(medians.ours),
      theirs_p50_ms: round(medians.theirs),
      synced_p50_ms: round(medians.floor),
      ratio_to_synced: round(medians.ours / medians.floor),
      ours_per_second: Math.round(rates.ours),
      theirs_per_second: Math.round(rates.theirs),
      synced_per_second: Math.round(rates.floor),
      ratio_at_once: round(rates.theirs / rates.ours),
    };
  } finally {
    for (const part of closing) await part.close();
    await house.close();
    await rm(dir, { recursive: true, force: true });
  }
}

/** Answers without looking; with a file, after what it was asked is safe on disk. */
const constant = (file?: FileHandle): Harness => ({
  async receive(message) {
    const { id, method } = message as { id: string; method: string };
    await file?.write(`${JSON.stringify(message)}\n`);
    await file?.datasync();
    const result = method === 'ahp/handshake' ? HELLO : { decision: 'allow' };
    return id === undefined ? { kind: 'taken' } : { kind: 'reply', response: { jsonrpc: '2.0', id, result } };
  },
  async left() {},
  async close() {},
});
const HELLO = { protocol_version: '2.4', harness_info: { name: 'null', version: '0', capabilities: [] } };

const LINKS: Record<(typeof names)[number], (harness: Harness, path: string, closing: Closable[]) => Promise<Link>> = {
  async 'ahp-stdio'(harness) {
    const [input, output] = [new PassThrough(), new PassThrough()];
    serveLines(harness, { input, output }, { actor: LOCAL_AGENT, log: QUIET, limit: 4 << 20 }).catch(() => {});
    return lineLink(output, input, () => input.end());
  },
  async 'ahp-unix'(harness, path, closing) {
    closing.push(await serveUnix(path, harness, { lineLimit: 4 << 20 }, { log: QUIET }));
    return await openLink({ socket: path }, undefined, QUIET);
  },
  async 'ahp-http'(harness, _path, closing) {
    return await openLink({ url: `${await served(harness, closing)}/ahp` }, { kind: 'token', value: 't' }, QUIET);
  },
  async 'ahp-ws'(harness, _path, closing) {
    const url = (await served(harness, closing)).replace(/^http/, 'ws');
    return await openLink({ url: `${url}/ahp` }, { kind: 'token', value: 't' }, QUIET);
  },
};

async function served(harness: Harness, closing: Closable[]): Promise<string> {
  let count = 0;
  const http = createHttpHost({ requestId: () => `req_${++count}`, log: QUIET, graceMs: 100 });
  const deps: Deps = {
    log: QUIET,
    clock: systemClock,
    ids: createIds(),
    http,
    authenticate: async () => LOCAL_AGENT,
    jwks: () => ({}),
    secret: async () => '',
  };
  closing.push(await openHarnessDoor(harness, settingsOf({}), deps), http);
  return (await http.listen()).url;
}

function question(count: number): AhpEvent {
  return {
    event_type: 'pre_action',
    session_id: 's',
    agent_id: 'a',
    timestamp: '2026-05-01T00:00:00Z',
    depth: 0,
    payload: { action_type: 'tool_call', tool_name: 'bash', arguments: { command: `ls -la /repo/${count}` } },
  };
}

type Who = 'ours' | 'theirs' | 'floor';
type Contenders = Readonly<Record<Who, Asking>>;

async function oneByOne(contenders: Contenders): Promise<Record<Who, number>> {
  const times: Record<Who, number[]> = { ours: [], theirs: [], floor: [] };
  const end = performance.now() + SECONDS * 1_000;
  let count = 0;
  for (let round = 0; performance.now() < end || round < 4; round += 1) {
    for (const [who, asking] of Object.entries(contenders) as [Who, Asking][]) {
      for (let index = 0; index < ROUND; index += 1) {
        const start = performance.now();
        await asking.event(question(++count));
        // The first rounds warm everyone up.
        if (round >= 2) times[who].push(performance.now() - start);
      }
    }
  }
  return { ours: median(times.ours), theirs: median(times.theirs), floor: median(times.floor) };
}

async function manyAtOnce(contenders: Contenders): Promise<Record<Who, number>> {
  const spent = { ours: 0, theirs: 0, floor: 0 };
  const asked = { ours: 0, theirs: 0, floor: 0 };
  let count = 1_000_000;
  for (let round = 0; round < 6; round += 1) {
    for (const [who, asking] of Object.entries(contenders) as [Who, Asking][]) {
      const start = performance.now();
      await Promise.all(Array.from({ length: AT_ONCE * 4 }, () => asking.event(question(++count))));
      if (round === 0) continue;
      spent[who] += performance.now() - start;
      asked[who] += AT_ONCE * 4;
    }
  }
  const rate = (who: Who) => (asked[who] / spent[who]) * 1_000;
  return { ours: rate('ours'), theirs: rate('theirs'), floor: rate('floor') };
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN;
}
