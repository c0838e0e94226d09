/**
 * Serving A2A peers, against the SDK's own in-memory request handler behind the SDK's own transport, with the same agent in
 * the same run. `a2a-send`: blocking sends per second, each authenticated, decided by policy, made durable and receipted on
 * our side. `a2a-stream`: events per second on streams of many chunks, against a plain server that writes the same bytes and does
 * nothing else, which is the limit; the SDK stands beside it. Each side is a process of its own; so are the callers, the same for all.
 */
import { fork } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { A2aReport, A2aWanted } from '../a2a/load.ts';
import { median } from '../native/side.ts';
import type { Measured } from '../run.ts';
import { processorMsOf, residentOf, type Started, startSide } from '../sides/process.ts';

export const names = ['a2a-send', 'a2a-stream'] as const;
export const name = 'a2a';

/** Many short ones: a collection or a checkpoint that falls into one side's round and not into the other's evens out. */
const ROUNDS = 11;

interface Shape {
  readonly method: string;
  readonly chunks: number;
  readonly callers: number;
  readonly requests: number;
  /** Rounds both sides serve before anything is counted: a gateway runs for weeks. */
  readonly warmUp: number;
}
const SHAPES: Readonly<Record<(typeof names)[number], Shape>> = {
  'a2a-send': { method: 'SendMessage', chunks: 3, callers: 128, requests: 512, warmUp: 12 },
  'a2a-stream': { method: 'SendStreamingMessage', chunks: 300, callers: 8, requests: 8, warmUp: 4 },
};

/** Without the extension ours sends an answer once and whole, and there would be no stream to speak of. */
const HEADERS = {
  'a2a-send': { 'a2a-version': '1.0' },
  'a2a-stream': { 'a2a-version': '1.0', 'a2a-extensions': 'urn:tollbridge:a2a:pieces:v1' },
} as const;

export async function run(wanted: string = name): Promise<readonly Measured[]> {
  const figures: Measured[] = [];
  for (const each of wanted === name ? names : [wanted as (typeof names)[number]]) figures.push(await measure(each));
  return figures;
}

async function measure(bench: (typeof names)[number]): Promise<Measured> {
  const shape = SHAPES[bench];
  const ours = { ...(await start('ours', shape)), path: '/a2a/talker' };
  const theirs = { ...(await start('theirs', shape)), path: '/rpc' };
  const child = fork(fileURLToPath(new URL('../a2a/load.js', import.meta.url)));
  const ask = (wanted: A2aWanted) =>
    new Promise<A2aReport>((resolve) => {
      child.once('message', resolve);
      child.send(wanted);
    });
  const parts = [{ text: 'look at the plan and say what is missing' }];
  const params = { message: { messageId: 'm', role: 'ROLE_USER', parts } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: shape.method, params });
  const limit = bench === 'a2a-stream' ? await startLimit(ours, body) : undefined;
  const rate = async ({ port, path, pid, token = 'nobody asks' }: typeof ours): Promise<Rate> => {
    const before = processorMsOf(pid);
    const { ms, bad, events } = await ask({
      ...{ port, path, token, body, headers: HEADERS[bench], callers: shape.callers, requests: shape.requests },
    });
    if (bad > 0) throw new Error(`${bad} requests were refused, or their work failed`);
    const count = bench === 'a2a-send' ? shape.requests : events;
    return { perSecond: (count * 1000) / ms, cpuMs: (processorMsOf(pid) - before) / count };
  };
  const rounds: Round[] = [];
  try {
    for (let round = 0; round < shape.warmUp + ROUNDS; round += 1) {
      const one = { ours: await rate(ours), theirs: await rate(theirs), ...(limit && { limit: await rate(limit) }) };
      if (round >= shape.warmUp) rounds.push(one);
    }
    const of = (figure: (each: Round) => number) => Number(median(rounds.map(figure)).toFixed(3));
    const unit = bench === 'a2a-send' ? 'sends' : 'events';
    return {
      bench,
      ratio: of((each) => each.ours.perSecond / (each.limit ?? each.theirs).perSecond),
      against: limit
        ? 'a plain server that writes the same bytes'
        : "the SDK's in-memory DefaultRequestHandler with the same agent",
      ...(limit && {
        ratio_to_sdk: of((each) => each.ours.perSecond / each.theirs.perSecond),
        limit_events_per_second: Math.round(of((each) => each.limit?.perSecond ?? 0)),
      }),
      [`ours_${unit}_per_second`]: Math.round(of((each) => each.ours.perSecond)),
      [`theirs_${unit}_per_second`]: Math.round(of((each) => each.theirs.perSecond)),
      // Time of the processor alone, of all threads, without what was spent waiting for the disk.
      ours_cpu_ms_each: of((each) => each.ours.cpuMs),
      theirs_cpu_ms_each: of((each) => each.theirs.cpuMs),
      ours_rss_mib: Math.round(residentOf(ours.pid)),
      theirs_rss_mib: Math.round(residentOf(theirs.pid)),
    };
  } finally {
    child.kill();
    limit?.close();
    theirs.close();
    ours.close();
  }
}

const start = (side: string, { chunks }: Shape) =>
  startSide([fileURLToPath(new URL(`../a2a/${side}.js`, import.meta.url)), String(chunks)]);

/** A stream of ours, to be sent again as it was. */
async function startLimit(ours: Started & { readonly path: string }, body: string): Promise<typeof ours> {
  const known = { 'content-type': 'application/json', authorization: `Bearer ${ours.token}` };
  const headers = { ...HEADERS['a2a-stream'], ...known };
  const answer = await fetch(`http://127.0.0.1:${ours.port}${ours.path}`, { method: 'POST', headers, body });
  const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
  try {
    const file = join(dir, 'stream');
    await writeFile(file, await answer.text());
    return { ...(await startSide([fileURLToPath(new URL('../a2a/limit.js', import.meta.url)), file])), path: '/' };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

interface Round {
  readonly ours: Rate;
  readonly theirs: Rate;
  readonly limit?: Rate;
}
interface Rate {
  readonly perSecond: number;
  readonly cpuMs: number;
}
