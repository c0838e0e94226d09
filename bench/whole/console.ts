/**
 * Ten open consoles and the gateway's throughput: tasks per second while another process does what ten pages do (each reads the stream of
 * every event, and asks for running tasks and health now and then), against the same gateway without them. Then one real browser with
 * 100,000 events in the log: time until a key is answered, the page's memory with all of them loaded, and how it keeps up with 500 more
 * a second: the time that a key takes, and the longest time between two frames.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import chromium from '@sparticuz/chromium';
import { type Browser, chromium as driver, type Page } from 'playwright-core';
import { readConfig } from '../../src/runtime/config/config.ts';
import { type Gateway, startGateway } from '../../src/runtime/gateway.ts';
import type { Measured } from '../run.ts';

export const name = 'console';
export const names = ['console-open', 'console-page'];

const CONSOLES = 10;
const TASKS = 250;
const AT_ONCE = 8;
const ROUNDS = 5;
const EVENTS = 100_000;
const BATCH = 500;
/** Events a second while the page is measured, in as many parts, for as many seconds. */
const BUSY = { perSecond: 500, parts: 20, seconds: 4 };
const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

export async function run(wanted: string = name): Promise<readonly Measured[]> {
  const kinds = wanted === name ? names : [wanted];
  const measured: Measured[] = [];
  for (const kind of kinds) {
    const dir = await mkdtemp(join(tmpdir(), 'tb-bench-console-'));
    const gateway = await startGateway(await readConfig({ env: {}, cwd: dir, data: join(dir, 'data'), port: 0 }));
    try {
      measured.push(kind === 'console-open' ? await throughput(gateway) : await page(gateway));
    } finally {
      await gateway.close();
      await rm(dir, { recursive: true, force: true });
    }
  }
  return measured;
}

async function throughput(gateway: Gateway): Promise<Measured> {
  await rate(gateway);
  const ours: Rate[] = [];
  const theirs: Rate[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    // Turn by turn: what changes while the bench runs counts for both.
    if (round % 2 === 0) theirs.push(await rate(gateway));
    const readers = await openReaders(gateway);
    ours.push(await rate(gateway));
    readers.kill();
    if (round % 2 === 1) theirs.push(await rate(gateway));
  }
  const middle = (rates: readonly Rate[], of: keyof Rate) => median(rates.map((one) => one[of]));
  const each = (rates: readonly Rate[]) => rates.map(({ perSecond }) => Math.round(perSecond)).join(' ');
  const [with_consoles, without] = [middle(ours, 'perSecond'), middle(theirs, 'perSecond')];
  return {
    bench: 'console-open',
    ratio: round(with_consoles / without),
    against: 'the same gateway without an open console, in tasks per second',
    consoles: CONSOLES,
    with_consoles: round(with_consoles),
    without: round(without),
    rounds_with: each(ours),
    rounds_without: each(theirs),
    // Of this process, which is the gateway and the clients of its tasks; the consoles are another one.
    cpu_ms_per_task_with: round(middle(ours, 'cpuMs')),
    cpu_ms_per_task_without: round(middle(theirs, 'cpuMs')),
  };
}

/** The same page with an empty log is what the full one is held against. */
async function page(gateway: Gateway): Promise<Measured> {
  const session = await post(gateway, '/v1/sessions', { workspace_id: 'workspace_default' });
  const browser = await openBrowser();
  try {
    const empty = await opened(browser, gateway);
    await seed(gateway, session);
    const full = await opened(browser, gateway);
    const { ms: interactive_ms } = full;
    return {
      bench: 'console-page',
      ratio: round(interactive_ms / empty.ms),
      against: 'the same page with a log of a few events, in time until a key is answered',
      interactive_ms,
      empty_ms: empty.ms,
      ...(await loadedWhole(full.page)),
      ...(await keptUp(full.page, gateway, session)),
    };
  } finally {
    await browser.close();
  }
}

async function post({ url, token }: Gateway, path: string, body: object): Promise<string> {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...VERSION },
    body: JSON.stringify(body),
  });
  return ((await answer.json()) as { id: string }).id;
}

interface Rate {
  readonly perSecond: number;
  /** Processor time per task. */
  readonly cpuMs: number;
}

/** Tasks per second, each with one decided tool call, until all of them have a receipt. */
async function rate(gateway: Gateway): Promise<Rate> {
  const began = performance.now();
  const usedBefore = process.cpuUsage();
  let left = TASKS;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      const session_id = await post(gateway, '/v1/sessions', { workspace_id: 'workspace_default' });
      const task = await post(gateway, '/v1/tasks', { session_id, input: { text: 'read plan' } });
      const headers = { authorization: `Bearer ${gateway.token}`, ...VERSION };
      // The stream of a task ends with it.
      await (await fetch(`${gateway.url}/v1/tasks/${task}/stream`, { headers })).text();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const { user, system } = process.cpuUsage(usedBefore);
  return { perSecond: (TASKS / (performance.now() - began)) * 1000, cpuMs: (user + system) / 1000 / TASKS };
}

/**
 * Reads and drops: browsers run on other machines, and what one spends on a row is not the gateway's. On two cores a reader that takes
 * the streams apart would be measured as if it were.
 */
const READER = `
const { get } = require('node:http');
const [url, token, count] = process.argv.slice(1);
const headers = { authorization: 'Bearer ' + token, 'harn-agents-protocol-version': '${VERSION['harn-agents-protocol-version']}' };
const ask = (path, agent, then) => get(url + path, { headers, agent }, (answer) => { answer.resume(); then?.(); });
let left = Number(count);
for (let at = 0; at < Number(count); at += 1) {
  ask('/v1/events/stream', false, () => { left -= 1; if (left === 0) console.log('ready'); });
  setInterval(() => ask('/v1/tasks?status=WORKING&limit=100'), 5000);
  setInterval(() => ask('/health/deps'), 10_000);
}`;

async function openReaders({ url, token }: Gateway) {
  const child = spawn(process.execPath, ['-e', READER, url, token ?? '', String(CONSOLES)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}

async function seed({ core }: Pick<Gateway, 'core'>, session: string): Promise<void> {
  for (let from = 0; from < EVENTS; from += BATCH) await notes({ core }, session, from, BATCH);
}

async function notes({ core }: Pick<Gateway, 'core'>, session: string, from: number, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, at) => ({
    event: 'vendor.tollbridge.note' as const,
    resource: { object: 'session', id: session },
    workspace_id: 'workspace_default',
    session_id: session,
    payload: { text: `row ${from + at} of many` },
  }));
  await core.log.commit({ decide: () => ({ events }) });
}

function openBrowser(): Promise<Browser> {
  const args = chromium.args.filter((arg) => !/single-process|no-zygote|swiftshader|use-gl|in-process-gpu/.test(arg));
  return chromium.executablePath().then((executablePath) => driver.launch({ executablePath, args, headless: true }));
}

/** From the address to the answer of a key. */
async function opened(browser: Browser, gateway: Gateway): Promise<{ readonly page: Page; readonly ms: number }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(60_000);
  await page.goto((await gateway.consoleLink?.()) ?? '');
  await page.locator('nav').waitFor();
  const began = performance.now();
  await page.goto(`${gateway.url}/activity`);
  await page.locator('.row').first().waitFor();
  await page.keyboard.press('p');
  await page.getByRole('button', { name: /^Resume/ }).waitFor();
  const ms = Math.round(performance.now() - began);
  await page.keyboard.press('p');
  return { page, ms };
}

/** All rows in the page: what a filter takes, and the memory that is in use after a collection. */
async function loadedWhole(page: Page) {
  const count = async () => Number(await page.locator('.list').getAttribute('data-count'));
  let rows = await count();
  while (rows < EVENTS) {
    // A few rows more may be live ones: the button is pressed again when all that it asked for are there, and is gone after the last.
    const wanted = Math.min(rows + 20_000, EVENTS);
    await page.getByRole('button', { name: 'Load older' }).click();
    while (rows < wanted) rows = await count();
  }
  const filtered = performance.now();
  await page.getByLabel('Text', { exact: true }).fill('row 7777');
  while ((await count()) > 1000);
  const filter_ms = Math.round(performance.now() - filtered);
  const protocol = await page.context().newCDPSession(page);
  await protocol.send('HeapProfiler.collectGarbage');
  const { usedSize } = await protocol.send('Runtime.getHeapUsage');
  return { rows, filter_ms, heap_mb: Math.round(usedSize / 1e6) };
}

/** All rows listed, and 500 more each second. */
async function keptUp(page: Page, gateway: Gateway, session: string) {
  const count = async () => Number(await page.locator('.list').getAttribute('data-count'));
  const filter = page.getByLabel('Text', { exact: true });
  await filter.fill('');
  // In a field, a key is a letter.
  await filter.blur();
  while ((await count()) < EVENTS);
  const before = await count();
  await page.evaluate(`
    window.gaps = [];
    let last = performance.now();
    const frame = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
  `);
  let written = 0;
  const { perSecond, parts, seconds } = BUSY;
  const writing = (async () => {
    const began = performance.now();
    for (let part = 0; part < seconds * parts; part += 1) {
      await notes(gateway, session, written, perSecond / parts);
      written += perSecond / parts;
      await sleep(Math.max(0, began + ((part + 1) * 1000) / parts - performance.now()));
    }
  })();
  const keys: number[] = [];
  for (let press = 0; press < seconds * 2; press += 1) {
    const pressed = performance.now();
    await page.keyboard.press('p');
    await page.getByRole('button', { name: press % 2 === 0 ? /^Resume/ : /^Pause/ }).waitFor();
    keys.push(Math.round(performance.now() - pressed));
    await sleep(400);
  }
  await writing;
  while ((await count()) < before + written);
  const gaps = await page.evaluate<readonly number[]>('window.gaps.slice(1)');
  return {
    busy_events_per_second: perSecond,
    busy_key_ms: median(keys),
    busy_longest_key_ms: Math.max(...keys),
    busy_frame_ms: round(median(gaps)),
    busy_longest_frame_ms: Math.round(Math.max(...gaps)),
  };
}

function round(figure: number): number {
  return Math.round(figure * 1000) / 1000;
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] as number;
}
