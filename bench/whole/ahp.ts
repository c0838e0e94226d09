/**
 * What a decision costs an agent: `pre_action` to our harness, durable log and all, against a null harness that answers a
 * constant over the same transport and the same reading and writing code. One agent asks, one question after the other
 * for the median, then many at once for the rate; the harnesses take turns. A third one answers the same constant after a
 * bare write and sync of one line: what durability alone costs on this machine, and so what ours cannot be quicker than.
 * Over stdio each harness is a program of its own; elsewhere all are in this process.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Asking, createAsking } from '../../adapters/ahp/client/harness-client.ts';
import { type HarnessLink, type HarnessLocation, openLink } from '../../adapters/ahp/client/transports.ts';
import { settingsOf } from '../../adapters/ahp/config.ts';
import { LOCAL_AGENT, openHarnessDoor, serveUnix } from '../../adapters/ahp/server/door.ts';
import type { Harness } from '../../adapters/ahp/server/harness.ts';
import type { AhpEvent } from '../../adapters/ahp/translate.ts';
import { createIds, systemClock } from '../../src/core/clock.ts';
import type { Closable, Deps } from '../../src/ports/index.ts';
import { createHttpHost } from '../../src/transport/http/server.ts';
import { openSide, QUIET, SIDES, type Side } from '../native/ahp-sides.ts';
import { median } from '../native/side.ts';
import type { Measured } from '../run.ts';

export const names = ['ahp-stdio', 'ahp-unix', 'ahp-http', 'ahp-ws'] as const;
export const name = 'ahp';

/** A harness is started once and asked for days, so all are asked for a while before it counts. */
const WARM_SECONDS = 3;
const SECONDS = 4;
const ROUND = 50;
const AT_ONCE = 256;
const CHILD = fileURLToPath(new URL('../native/ahp-child.js', import.meta.url));

export async function run(wanted: string = 'ahp'): Promise<readonly Measured[]> {
  const figures: Measured[] = [];
  for (const each of wanted === 'ahp' ? names : [wanted]) figures.push(await measure(each as (typeof names)[number]));
  return figures;
}

async function measure(bench: (typeof names)[number]): Promise<Measured> {
  const home = await mkdtemp(join(tmpdir(), 'tollbridge-bench-'));
  const closing: Closable[] = [];
  let count = 0;
  try {
    const open = async (side: Side) => {
      const dir = join(home, side);
      await mkdir(dir);
      const asking = createAsking(await connect(bench, side, dir, closing), () => `q${++count}`, 10_000);
      closing.unshift(asking);
      await asking.handshake({ session_id: 's', agent_id: 'a' });
      return asking;
    };
    const contenders = { ours: await open('ours'), theirs: await open('theirs'), synced: await open('synced') };
    const medians = await oneByOne(contenders);
    const rates = await manyAtOnce(contenders);
    const round = (value: number) => Number(value.toFixed(3));
    return {
      bench,
      ratio: round(medians.ours / medians.theirs),
      against: 'a harness that answers a constant on the same transport; p50 of one question after the other',
      ours_p50_ms: round(medians.ours),
      theirs_p50_ms: round(medians.theirs),
      synced_p50_ms: round(medians.synced),
      ratio_to_synced: round(medians.ours / medians.synced),
      ours_per_second: Math.round(rates.ours),
      theirs_per_second: Math.round(rates.theirs),
      synced_per_second: Math.round(rates.synced),
      ratio_at_once: round(rates.theirs / rates.ours),
    };
  } finally {
    for (const part of closing) await part.close();
    await rm(home, { recursive: true, force: true });
  }
}

async function connect(
  bench: (typeof names)[number],
  side: Side,
  dir: string,
  closing: Closable[],
): Promise<HarnessLink> {
  if (bench === 'ahp-stdio') {
    return await openLink({ command: [process.execPath, CHILD, side, dir] }, undefined, QUIET);
  }
  const harness = await openSide(side, dir);
  const where = await TARGETS[bench](harness, dir, closing);
  // The door closes the harness behind it; a socket alone does not.
  if (bench === 'ahp-unix') closing.push(harness);
  return await openLink(where, where.url ? { kind: 'token', value: 't' } : undefined, QUIET);
}

const TARGETS = {
  async 'ahp-unix'(harness: Harness, dir: string, closing: Closable[]): Promise<HarnessLocation> {
    const socket = join(dir, 's');
    closing.push(await serveUnix(socket, harness, { lineLimit: 4 << 20 }, { log: QUIET }));
    return { socket };
  },
  async 'ahp-http'(harness: Harness, _dir: string, closing: Closable[]): Promise<HarnessLocation> {
    return { url: `${await served(harness, closing)}/ahp` };
  },
  async 'ahp-ws'(harness: Harness, _dir: string, closing: Closable[]): Promise<HarnessLocation> {
    return { url: `${(await served(harness, closing)).replace(/^http/, 'ws')}/ahp` };
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

type Contenders = Readonly<Record<Side, Asking>>;

async function oneByOne(contenders: Contenders): Promise<Record<Side, number>> {
  const times: Record<Side, number[]> = { ours: [], theirs: [], synced: [] };
  const warm = performance.now() + WARM_SECONDS * 1_000;
  const end = warm + SECONDS * 1_000;
  let count = 0;
  for (let round = 0; performance.now() < end || times.synced.length < 2 * ROUND; round += 1) {
    const counts = round >= 2 && performance.now() >= warm;
    for (const who of SIDES) {
      const asking = contenders[who];
      for (let index = 0; index < ROUND; index += 1) {
        const start = performance.now();
        await asking.event(question(++count));
        if (counts) times[who].push(performance.now() - start);
      }
    }
  }
  return { ours: median(times.ours), theirs: median(times.theirs), synced: median(times.synced) };
}

async function manyAtOnce(contenders: Contenders): Promise<Record<Side, number>> {
  const spent = { ours: 0, theirs: 0, synced: 0 };
  const asked = { ours: 0, theirs: 0, synced: 0 };
  let count = 1_000_000;
  for (let round = 0; round < 6; round += 1) {
    for (const who of SIDES) {
      const asking = contenders[who];
      const start = performance.now();
      await Promise.all(Array.from({ length: AT_ONCE }, () => asking.event(question(++count))));
      if (round === 0) continue;
      spent[who] += performance.now() - start;
      asked[who] += AT_ONCE;
    }
  }
  const rate = (who: Side) => (asked[who] / spent[who]) * 1_000;
  return { ours: rate('ours'), theirs: rate('theirs'), synced: rate('synced') };
}
