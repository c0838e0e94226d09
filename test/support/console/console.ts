/** A gateway with its console, real traffic for it, and browsers that are signed in. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { PRESETS, type Preset } from '../../../src/auth/presets.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { type Gateway, startGateway } from '../../../src/runtime/gateway.ts';
import { openPage, type PageOptions } from '../process/browser.ts';
import { configIn } from '../process/config-in.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any;

const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

export interface ConsoleGateway {
  readonly dir: string;
  gateway: Gateway;
  /** One request with the printed token. */
  call(method: string, path: string, body?: object): Promise<{ status: number; body: Body }>;
  session(): Promise<string>;
  /** Work for the demo agent; gives the task's id. */
  work(text: string, session?: string): Promise<string>;
  /** A page that is signed in by a link. Fails the test when anything breaks its content security policy. */
  page(options?: PageOptions): Promise<Page>;
  key(preset: string, id: string): Promise<string>;
  /** The key of a person who may read everything and answer nothing. */
  viewer(): Promise<{ readonly key: string }>;
  /** The same gateway again, on the same port and data. */
  restart(): Promise<void>;
}

export const DESKTOP: PageOptions = { width: 1280, height: 800 };

/** `more` writes files beside the configuration and gives what to add to it. */
export async function openConsole(
  configuration = '',
  more?: (dir: string) => Promise<string>,
  env: NodeJS.ProcessEnv = {},
): Promise<ConsoleGateway> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-console-'));
  const config = `${configuration}${(await more?.(dir)) ?? ''}`;
  if (config) await writeFile(join(dir, 'tollbridge.yaml'), config);
  const start = async (port: number) => startGateway(await configIn(dir, { data: join(dir, 'data'), port, env }));
  const at: ConsoleGateway = {
    dir,
    gateway: await start(0),
    async call(method, path, body) {
      const answer = await fetch(`${at.gateway.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${at.gateway.token}`, 'content-type': 'application/json', ...VERSION },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
    },
    session: async () => (await at.call('POST', '/v1/sessions', { workspace_id: 'workspace_default' })).body.id,
    async work(text, session) {
      const session_id = session ?? (await at.session());
      const { status, body } = await at.call('POST', '/v1/tasks', { session_id, input: { text } });
      expect(status).toBe(202);
      return body.id;
    },
    async page(options = DESKTOP) {
      const page = watched(await openPage(options));
      await page.goto((await at.gateway.consoleLink?.()) ?? '');
      await page.locator('nav').waitFor();
      return page;
    },
    async key(preset, id) {
      const { kind, scopes, doors } = PRESETS.get(preset) as Preset;
      const actor = { id, kind, scopes: [...scopes], ...(doors && { doors: [...doors] }) };
      return (await openApiKeys(join(dir, 'data'), systemClock).create({ name: id, actor })).key;
    },
    async viewer() {
      const scopes = ['tasks:read', 'sessions:read', 'events:read', 'receipts:read', 'others:read'];
      const actor = { id: 'vera', kind: 'person' as const, scopes };
      return await openApiKeys(join(dir, 'data'), systemClock).create({ name: 'vera', actor });
    },
    async restart() {
      const port = Number(new URL(at.gateway.url).port);
      await at.gateway.close();
      at.gateway = await start(port);
    },
  };
  onTestFinished(async () => {
    await at.gateway.close();
    await rm(dir, { recursive: true, force: true });
  });
  return at;
}

/** Violations of the page's policy, errors of its scripts and requests to other hosts fail the test. */
export function watched(page: Page): Page {
  // Shorter than a test may take, so that what was waited for is named.
  page.setDefaultTimeout(15_000);
  const wrong: string[] = [];
  page.on('console', (message) => {
    if (/content security policy|trusted ?type/i.test(message.text())) wrong.push(message.text());
  });
  page.on('pageerror', (thrown) => wrong.push(thrown.message));
  page.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (hostname !== '127.0.0.1' && protocol !== 'blob:') wrong.push(`asked ${request.url()}`);
  });
  onTestFinished(async () => {
    expect(wrong).toEqual([]);
    await page.context().close();
  });
  return page;
}

/** What an automatic check of accessibility finds serious on this page as it is. */
export async function seriousIssues(page: Page): Promise<readonly string[]> {
  const path = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
  // The page's policy runs no script that is not its own; the driver's protocol is not bound by it.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(await readFile(path, 'utf8'));
  const found = await page.evaluate<{ id: string; impact: string; nodes: { html: string }[] }[]>(
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
  );
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}
