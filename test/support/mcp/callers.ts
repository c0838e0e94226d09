/** A gateway before a server with accounts, callers that are known by their bearer token, and people with browsers. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createSecrets, createSecretWriter, type VaultSource } from '../../../src/auth/vaults.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Authenticate, Deps, Logger } from '../../../src/ports/index.ts';
import { type Accounts, openAccounts } from './accounts.ts';
import { type McpGateway, type McpGatewayOptions, openMcpGateway } from './gateway.ts';
import { META } from './one-server.ts';
import type { Loose, UpstreamOptions } from './upstream.ts';
import { exchange } from './wire-client.ts';

const accountIn = (request: Loose) => request.headers.get('x-account');

export const WHOAMI: UpstreamOptions = {
  tools: {
    whoami: {
      call: ({ ctx }) => ({ content: [{ type: 'text', text: accountIn(ctx.http?.req) }] }),
    },
  },
};

/** Callers by their token; a token that names nobody else is the id of a person. */
export const byName: Authenticate = async (bearer) => {
  if (!bearer) throw new Fault('unauthenticated', 'a bearer token is needed');
  const [tenant, id] = bearer.includes('/') ? bearer.split('/', 2) : [undefined, bearer];
  return { id: id as string, kind: 'person', scopes: ['*'], ...(tenant && { tenant_id: tenant }) } satisfies Actor;
};

export interface Callers {
  readonly accounts: Accounts;
  readonly gateway: McpGateway;
  /** A request of the modern era, at the server's own address or the common one. */
  ask(who: string, method: string, params?: Loose, more?: { capabilities?: Loose; common?: boolean }): Promise<Loose>;
  /** The text of a tool's result. */
  call(who: string, tool: string, args?: Loose): Promise<string>;
  tools(who: string, common?: boolean): Promise<readonly string[]>;
  events(): Promise<readonly CoreEvent[]>;
  /** Every line of the process log. */
  readonly lines: string[];
  /** What the redactor was told. */
  readonly learned: string[];
  readonly secrets: Pick<Deps, 'secret' | 'keep' | 'alone'>;
  readonly vaults: readonly VaultSource[];
}

export async function openCallers(
  config: (accounts: Accounts) => Loose,
  options: Partial<McpGatewayOptions> & { readonly server?: UpstreamOptions } = {},
): Promise<Callers> {
  const accounts = await openAccounts(options.server ?? WHOAMI);
  const dir = await mkdtemp(join(tmpdir(), 'tb-callers-'));
  const vaults: VaultSource[] = [
    { name: 'local', provider: 'file', path: join(dir, 'vault.json'), key: { file: join(dir, 'vault.key') } },
  ];
  const [lines, learned]: [string[], string[]] = [[], []];
  const locations = { vaults, env: {}, learn: (value: string) => void learned.push(value) };
  const writer = createSecretWriter({ ...locations, clock: systemClock });
  const secrets = { secret: createSecrets(locations), ...writer };
  const note = (fields: object, message: string) =>
    void lines.push(
      `${message} ${JSON.stringify(fields, (_, value) => (value instanceof Error ? String(value) : value))}`,
    );
  const log: Logger = { info: note, warn: note, error: note };
  const gateway = await openMcpGateway({
    authenticate: byName,
    log,
    ...options,
    upstreams: { github: { url: accounts.url, ...config(accounts) } },
    deps: { ...secrets, learn: locations.learn, ...options.deps },
  });
  onTestFinished(async () => {
    await gateway.close();
    await accounts.close();
    await rm(dir, { recursive: true, force: true });
  });
  let count = 0;

  const ask: Callers['ask'] = async (who, method, params = {}, { capabilities = {}, common = false } = {}) => {
    const url = common ? `${gateway.url}/mcp` : gateway.at('github');
    const { frames } = await exchange(url, {
      headers: {
        authorization: `Bearer ${who}`,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(params.name !== undefined && { 'mcp-name': String(params.name) }),
      },
      body: {
        jsonrpc: '2.0',
        id: ++count,
        method,
        params: {
          ...params,
          _meta: { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: capabilities },
        },
      },
    });
    const last = frames.at(-1) as Loose;
    return last.result ?? last.error;
  };

  return {
    accounts,
    gateway,
    ask,
    lines,
    learned,
    secrets,
    vaults,
    async call(who, tool, args = {}) {
      const answer = await ask(who, 'tools/call', { name: tool, arguments: args });
      return answer.content?.[0]?.text ?? answer.message ?? JSON.stringify(answer);
    },
    async tools(who, common = false) {
      const { tools } = await ask(who, 'tools/list', {}, { common });
      return tools.map(({ name }: { name: string }) => name);
    },
    async events() {
      const all: CoreEvent[] = [];
      for await (const event of gateway.runtime.store.read({ stream: { of: 'all' } })) all.push(event);
      return all;
    },
  };
}

export function linkIn(text: string): string {
  return /https?:\/\/\S+\/connect\/\S+/.exec(text)?.[0].replace(/[,;.]$/, '') ?? '';
}

/** A person with a browser of their own, who has an account at the server. */
export function person(account: string) {
  let cookie: string | undefined;

  async function go(url: string, init: RequestInit = {}): Promise<{ status: number; text: string; location: string }> {
    const headers = { ...init.headers, ...(cookie !== undefined && { cookie }) };
    const answer = await fetch(url, { ...init, headers, redirect: 'manual' });
    const set = answer.headers.get('set-cookie')?.split(';')[0];
    if (set) cookie = set;
    return { status: answer.status, text: await answer.text(), location: answer.headers.get('location') ?? '' };
  }

  return {
    go,
    /** Opens the link and presses its button; returns the address of the sign-in page. */
    async begin(link: string): Promise<string> {
      await go(link);
      const { text } = await go(link, { method: 'POST', headers: { origin: new URL(link).origin } });
      const onward = /content="0;url=([^"]*)"/.exec(text)?.[1] ?? '';
      return onward.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
    },
    /** Signs in there, and returns the address that the browser is sent back to. */
    async consent(onward: string): Promise<string> {
      return (await go(`${onward}&account=${encodeURIComponent(account)}`)).location;
    },
    /** All of it: the page that the browser ends up at. */
    async signsIn(link: string): Promise<{ status: number; text: string; code: string }> {
      const { status, text } = await go(await this.consent(await this.begin(link)));
      return { status, text, code: /<code>([^<]*)<\/code>/.exec(text)?.[1] ?? '' };
    },
  };
}
