/**
 * A gateway with the MCP door and nothing else, on a port of its own: real log, real rules, real receipts, servers behind it as
 * configured. Every caller is let in as the same person, because the programs that come here carry no tokens.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpenSignInPage } from '../../../adapters/mcp/client/auth/sign-in.ts';
import { settingsOf, type UpstreamConfig } from '../../../adapters/mcp/config.ts';
import { mcp } from '../../../adapters/mcp/index.ts';
import { mcpDoor } from '../../../adapters/mcp/server/door.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { Fault } from '../../../src/model/faults.ts';
import type {
  Adapter,
  AgentBackend,
  Authenticate,
  Closable,
  Deps,
  Logger,
  PolicyEngine,
  ToolBackend,
} from '../../../src/ports/index.ts';
import { type CoreRuntime, openCoreRuntime } from '../../../src/runtime/assemble.ts';
import type { ExposeConfig } from '../../../src/runtime/config/expose.ts';
import { exposedTools } from '../../../src/runtime/mounts/exposed-tools.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';

export const VISITOR: Actor = { id: 'visitor', kind: 'person', scopes: ['*'] };
export const ALLOW_ALL = '- { id: everything, when: {}, then: allow }';

export interface McpGatewayOptions {
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>;
  /** Read anew with every reload where it is a function. */
  readonly rules?: string | (() => string);
  readonly agents?: readonly AgentBackend[];
  /** What the configuration exposes of a server. */
  readonly expose?: Readonly<Record<string, ExposeConfig>>;
  readonly engines?: readonly PolicyEngine[];
  /** Tools of another kind beside the servers'. */
  readonly tools?: readonly ToolBackend[];
  readonly door?: object;
  /** Doors of other protocols, on the same port. */
  readonly doors?: readonly Adapter[];
  /** After how long an answer comes on a stream; long, where a test is about the status, on however busy a machine. */
  readonly silenceMs?: number;
  readonly authenticate?: Authenticate;
  readonly log?: Logger;
  readonly secrets?: Readonly<Record<string, string>>;
  /** Dependencies instead of those that are made here. */
  readonly deps?: Partial<Deps>;
  /** Opens the authorization server's page when a person has to sign in. */
  readonly visit?: OpenSignInPage;
  /** Where it keeps everything; a directory of its own, gone when it is closed, when absent. */
  readonly dir?: string;
}

export interface McpGateway extends Closable {
  readonly runtime: CoreRuntime;
  readonly url: string;
  /** Where one server is reached as it is. */
  at(upstream: string): string;
}

export async function openMcpGateway(options: McpGatewayOptions): Promise<McpGateway> {
  const { upstreams, rules = ALLOW_ALL, door = {}, log = QUIET, secrets = {} } = options;
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'tb-mcp-')));
  const ids = createIds();
  const http = createHttpHost({ requestId: () => ids.next('req'), log, graceMs: 200 });
  const deps: Deps & { visit?: OpenSignInPage } = {
    log,
    clock: systemClock,
    ids,
    http,
    authenticate: options.authenticate ?? (async () => VISITOR),
    jwks: () => ({}),
    ...(options.visit && { visit: options.visit }),
    async secret(name) {
      const value = secrets[name];
      if (value === undefined) throw new Fault('not_found', `there is no secret called ${name}`);
      return value;
    },
    ...options.deps,
  };
  const tools: ToolBackend[] = Object.entries(upstreams).map(([name, config]) =>
    exposedTools(mcp.parts.tools.open(config, { ...deps, name }), options.expose?.[name]),
  );
  const runtime = await openCoreRuntime({
    dataDir: dir,
    serving: true,
    ids,
    tools: [...tools, ...(options.tools ?? [])],
    backends: options.agents ?? [],
    engines: options.engines ?? [],
    logger: log,
    policy: { load: async () => ({ rules: typeof rules === 'string' ? rules : rules(), files: [] }) },
    settings: { defaultTier: 'act_auto' },
  });
  await runtime.start();
  const body = { object: 'workspace' as const, body: { name: 'w', root: 'file:///w' } };
  await runtime.bridge.submit({ kind: 'resource.create', actor: VISITOR, body });
  const settings = settingsOf(door);
  const { silenceMs = settings.silenceMs } = options;
  const opened = await mcpDoor({ ...settings, silenceMs }, deps).open(runtime.bridge);
  const others: Closable[] = [];
  for (const { name, parts } of options.doors ?? [])
    others.push(await parts.door!.open({} as never, { ...deps, name }).open(runtime.bridge));
  const { url } = await http.listen();
  // The suite wants to be spoken to as localhost, and finds out whether other names are let in.
  const base = url.replace('127.0.0.1', 'localhost');
  return {
    runtime,
    url: base,
    at: (upstream) => `${base}/mcp/${upstream}`,
    async close() {
      for (const door of [...others, opened]) await door.close();
      await http.close();
      await runtime.close();
      for (const tool of tools) await tool.close?.();
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}

const QUIET: Logger = { info() {}, warn() {}, error() {} };
