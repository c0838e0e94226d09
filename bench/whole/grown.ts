/**
 * Does a gateway slow down as its log grows? The same things, asked of the built program on a log of a hundred thousand events and on
 * the same log when it is longer: from its start until it listens (`grown-start`), work accepted (`grown-submit`), a page of an old and
 * of a new task's events (`grown-page`), the questions that are open (`grown-approvals`), the newest fifty events (`grown-log`); and per event
 * or decision the commands that read all of it (`grown-verify`, `grown-diff`). Times of the longer log over those of the shorter: 1 is level.
 * TOLLBRIDGE_BENCH_EVENTS names other lengths.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { median } from '../native/side.ts';
import type { Measured } from '../run.ts';
import { growLog } from '../verify/log.ts';

export const name = 'grown';

const PROGRAM = resolve(process.env.TOLLBRIDGE_BUILD ?? resolve(import.meta.dirname, '../..'), 'src/main.js');
const LENGTHS = (process.env.TOLLBRIDGE_BENCH_EVENTS ?? '100000,1000000').split(',').map(Number);
const LISTENS = /tollbridge listens on (http:\/\/\S+) {2}\(token (\S+)\)/;
const RULES = { rules: [{ id: 'reads', when: { tool: 'read_file' }, then: 'allow' }] };
const STARTS = 3;
const REQUESTS = 100;
const OPEN = 5;
const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

/** Milliseconds; for what reads the whole log, microseconds for an event or a decision. */
const FIGURES = ['start', 'submit', 'page', 'approvals', 'log', 'verify', 'diff'] as const;
type Times = Readonly<Record<(typeof FIGURES)[number], number>>;

/** One log, looked at at each length as it grows. */
export async function run(): Promise<readonly Measured[]> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
  try {
    const rules = join(dir, 'other-rules.yaml');
    await writeFile(rules, JSON.stringify(RULES));
    const found: { readonly events: number; readonly times: Times }[] = [];
    for (const length of LENGTHS) {
      const events = await growLog(dir, length);
      found.push({ events, times: await timesOf(dir, rules, events) });
    }
    const [short] = found;
    return found.slice(1).flatMap(({ events, times }) =>
      FIGURES.map((figure) => ({
        bench: `grown-${figure}`,
        ratio: round(times[figure] / short!.times[figure]),
        against: `the same log when it had ${short!.events} events`,
        events,
        [unitOf(figure)]: round(times[figure]),
        [`${unitOf(figure)}, short log`]: round(short!.times[figure]),
      })),
    );
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function timesOf(dir: string, rules: string, events: number): Promise<Times> {
  const starts: number[] = [];
  for (let n = 1; n < STARTS; n += 1) {
    const gateway = await serve(dir);
    starts.push(gateway.ms);
    await gateway.end();
  }
  const gateway = await serve(dir);
  starts.push(gateway.ms);
  const served = await requests(gateway).finally(gateway.end);
  const verify = await command(['verify', 'all', '--data', dir]);
  const diff = await command(['policy', 'diff', rules, '--data', dir]);
  const decisions = Number(/^(\d+) decisions? on record/m.exec(diff.out)?.[1]);
  if (!decisions) throw new Error(`no decisions were compared: ${diff.out.slice(-300)}`);
  const logs: number[] = [];
  for (let n = 0; n < STARTS; n += 1) logs.push((await command(['log', '--data', dir])).ms);
  return {
    ...served,
    start: median(starts),
    log: median(logs),
    verify: (verify.ms * 1_000) / events,
    diff: (diff.ms * 1_000) / decisions,
  };
}

interface Served {
  readonly url: string;
  readonly token: string;
  readonly ms: number;
  end(): Promise<void>;
}

async function serve(dir: string): Promise<Served> {
  const began = performance.now();
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--port', '0', '--data', dir], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const [, url, token] = await said(child, LISTENS);
  const end = async () => {
    child.kill();
    await closed;
  };
  return { url: url as string, token: token as string, ms: performance.now() - began, end };
}

function said(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  let out = '';
  return new Promise((resolve, reject) => {
    const look = (chunk: Buffer) => {
      out += chunk;
      const found = pattern.exec(out);
      if (found) resolve(found);
    };
    child.stdout?.on('data', look);
    child.stderr?.on('data', look);
    child.once('close', () => reject(new Error(`it ended without saying ${pattern}: ${out.slice(-500)}`)));
  });
}

async function requests({ url, token }: Served): Promise<Pick<Times, 'submit' | 'page' | 'approvals'>> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...VERSION };
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
  const ask = async (path: string, body?: object): Promise<any> => {
    const answer = await fetch(`${url}${path}`, {
      headers,
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return await answer.json();
  };
  const timed = async (once: () => Promise<unknown>) => {
    const times: number[] = [];
    for (let n = 0; n < REQUESTS; n += 1) {
      const began = performance.now();
      await once();
      times.push(performance.now() - began);
    }
    return median(times);
  };
  const session = async () => (await ask('/v1/sessions', { workspace_id: 'workspace_bench' })).id as string;
  const submit = (id: string, text: string) => ask(`/v1/sessions/${id}/tasks`, { input: { text } });
  for (let n = 0; n < OPEN; n += 1) await submit(await session(), 'write plan anew');
  const open = async () => (await ask('/v1/permission-requests')).data.length as number;
  while ((await open()) < OPEN) await new Promise((resolve) => setTimeout(resolve, 20));
  const [oldest] = (await ask('/v1/events?limit=50')).data.flatMap(({ task_id: id }: { task_id?: string }) => id ?? []);
  const [newest] = (await ask('/v1/tasks?limit=1')).data;
  const pages = [oldest as string, newest.id as string].map((id) => `/v1/tasks/${id}/events?limit=50`);
  const mine = await session();
  return {
    page: await timed(async () => await Promise.all(pages.map((path) => ask(path)))),
    approvals: await timed(open),
    submit: await timed(() => submit(mine, 'hello')),
  };
}

async function command(args: readonly string[]): Promise<{ readonly ms: number; readonly out: string }> {
  const began = performance.now();
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  // 1: `policy diff` has found decisions that would change.
  if (code !== 0 && code !== 1) throw new Error(`${args.join(' ')} ended with ${code}: ${out.slice(-500)}`);
  return { ms: performance.now() - began, out };
}

const unitOf = (figure: string): string => (figure === 'verify' || figure === 'diff' ? 'µs each' : 'ms');

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
