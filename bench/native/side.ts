/** Shared by the measurements of doors: a whole gateway behind its real door, and for the native door the process that puts load on it. */
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { harn } from '../../adapters/harn/index.ts';
import { createAuthenticator } from '../../src/auth/authenticate.ts';
import { createIds, systemClock } from '../../src/core/clock.ts';
import type { Actor } from '../../src/model/actions.ts';
import type { AgentBackend, Deps, Logger } from '../../src/ports/index.ts';
import { openCoreRuntime } from '../../src/runtime/assemble.ts';
import { FIRST_RULES } from '../../src/runtime/config/config.ts';
import { createHttpHost } from '../../src/transport/http/server.ts';
import type { Report, Wanted } from './load.ts';

export const TOKEN = 'token-of-the-measurement';
export const HEADERS = `authorization: Bearer ${TOKEN}\r\nharn-agents-protocol-version: agents-protocol-2026-04-25\r\n`;
export const ANA: Actor = { id: 'ana', kind: 'person', scopes: ['*'] };
const quiet: Logger = { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) };

/** As the gateway puts it together: real log, real rules, real tokens; only the agent is the measurement's. */
export async function openHost(agent: AgentBackend) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
  const ids = createIds();
  const policy = { load: async () => ({ rules: FIRST_RULES, rulesName: 'bench', files: [] }) };
  const runtime = await openCoreRuntime({
    dataDir: dir,
    serving: true,
    backends: [agent],
    ids,
    logger: quiet,
    policy,
  });
  await runtime.start();
  const http = createHttpHost({ requestId: () => ids.next('req'), log: quiet, graceMs: 100 });
  const deps: Deps = {
    log: quiet,
    clock: systemClock,
    ids,
    http,
    authenticate: createAuthenticator({ clock: systemClock, localToken: TOKEN, localActor: ANA, files: dir }),
    jwks: () => runtime.keyring.jwks(),
    sign: (text) => runtime.keyring.signer().sign(text),
    mac: (text) => runtime.keyring.signer().mac(text),
    secret: () => Promise.reject(new Error('there are no secrets here')),
  };
  return {
    runtime: runtime,
    deps,
    /** The file of the log. */
    log: join(dir, 'log.db'),
    /** Once the doors are open; answers with the address. */
    listen: async () => (await http.listen()).url,
    async close() {
      await http.close();
      await runtime.idle();
      await runtime.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export async function openDoor(agent: AgentBackend) {
  const { runtime, deps, listen, close } = await openHost(agent);
  const door = await harn.parts.door.open({}, { ...deps, name: 'harn' }).open(runtime.bridge);
  const url = await listen();
  const workspace = await runtime.bridge.submit({
    kind: 'resource.create',
    actor: ANA,
    body: { object: 'workspace', body: { name: 'w', root: 'harn://w' } },
  });
  return {
    runtime,
    url,
    port: Number(new URL(url).port),
    async session(): Promise<string> {
      const body = { workspace_id: workspace.resource.id };
      return (await runtime.bridge.submit({ kind: 'session.create', actor: ANA, body })).resource.id;
    },
    async close() {
      await door.close();
      await close();
    },
  };
}

export function startLoad() {
  const child = fork(fileURLToPath(new URL('./load.js', import.meta.url)));
  let receive: ((report: Report) => void) | undefined;
  child.on('message', (report: Report) => receive?.(report));
  return {
    /** Sends a wish; `on` hears what comes of it. */
    ask(wanted: Wanted): { readonly ready: Promise<void>; readonly done: Promise<Extract<Report, { said: 'done' }>> } {
      let isReady = () => {};
      const ready = new Promise<void>((resolve) => {
        isReady = resolve;
      });
      const done = new Promise<Extract<Report, { said: 'done' }>>((resolve) => {
        receive = (report) => (report.said === 'ready' ? isReady() : resolve(report));
      });
      child.send(wanted);
      return { ready, done };
    },
    close: () => void child.kill(),
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
