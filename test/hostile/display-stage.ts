/**
 * A gateway and a relay of the built program on one data directory, with an upstream that writes down every act it sees, a
 * channel that takes webhooks, and keys for someone who may answer and someone who may only look.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Contact, checkActs, forgetLogs, readContacts } from '../support/oracle/oracle.ts';
import { type Said, type StartedGateway, startGateway, startProgram } from '../support/process/cli.ts';
import { type Spoken, startSpeaking } from '../support/process/stdio-process.ts';
import type { End } from '../support/wire/line-end.ts';

const UPSTREAM = resolve(import.meta.dirname, '../support/upstreams/display-upstream.mjs');

export interface Reported {
  readonly id: string;
  readonly decide_url: string;
  readonly text: string;
  readonly [member: string]: unknown;
}

export interface Stage {
  readonly data: string;
  readonly config: string;
  readonly url: () => string;
  readonly token: () => string;
  readonly approver: string;
  readonly reader: string;
  /** A client of the tool server, greeted. */
  client(capabilities?: object): Promise<End>;
  /** The same, started by this process, which is the agent for as long as it runs. */
  asAgent(): Promise<Spoken>;
  /** Another command that speaks on its standard output. */
  speaks(words: readonly string[]): Spoken;
  /** The next question that the channel receives. */
  asked(): Promise<Reported>;
  command(...words: readonly string[]): Promise<Said>;
  rest(
    path: string,
    key: string,
    body?: object,
  ): Promise<{ status: number; text: string; body: Record<string, unknown> }>;
  contacts(): Contact[];
  violations(): Promise<string[]>;
  /** Files below the data directory that hold this text. */
  holding(text: string): string[];
  kept(): string[];
  /** The gateway is killed and started again. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const dir = mkdtempSync(join(tmpdir(), 'tb-display-'));
  const data = join(dir, 'data');
  const config = join(dir, 'tollbridge.yaml');
  const contacts = join(dir, 'contacts.jsonl');
  mkdirSync(data);
  const reported: Reported[] = [];
  const seen = new Set<string>();
  const waiting: ((reported: Reported) => void)[] = [];
  const channel = await listening((body) => {
    const { type, data: question } = JSON.parse(body) as { type: string; data: Reported };
    // After a restart what is still open is reported once more.
    if (type !== 'approval.requested' || seen.has(question.id)) return;
    seen.add(question.id);
    const next = waiting.shift();
    if (next) next(question);
    else reported.push(question);
  });
  const hook = `http://127.0.0.1:${(channel.address() as AddressInfo).port}/hook`;
  writeFileSync(config, configuration(hook));

  const env = { TOLLBRIDGE_SECRET_duty: 'a key of the duty channel' };
  const common = ['--data', data, '--config', config];
  const children: ChildProcess[] = [];
  const start: typeof startProgram = (words, options) => {
    const started = startProgram(words, options);
    children.push(started.child);
    return started;
  };

  function command(...words: readonly string[]): Promise<Said> {
    const { child, ended } = start([...common, ...words], { env });
    child.stdin.end();
    return ended;
  }

  async function key(name: string, ...words: readonly string[]): Promise<string> {
    const { out } = await command('keys', 'create', name, '--json', ...words);
    const made = JSON.parse(out) as Record<string, unknown>;
    return String(made.token ?? made.key ?? made.secret);
  }

  let gateway: StartedGateway;
  async function serve(): Promise<void> {
    gateway = await startGateway(common, { env, start });
  }

  const approver = await key('approver', '--for', 'approver');
  const looking = ['tasks:read', 'events:read', 'sessions:read', 'others:read'];
  const reader = await key('reader', '--kind', 'person', '--scope', ...looking);
  await serve();

  const clients = new Set<ChildProcess>();
  const speaks = (words: readonly string[], ownClient = false) => {
    const spoken = startSpeaking([...common, ...words], { env, ownClient });
    children.push(spoken.child);
    if (ownClient) clients.add(spoken.child);
    return spoken;
  };

  async function greeted(capabilities: object, ownClient: boolean): Promise<Spoken> {
    const words = ['mcp', '--name', 'shell', '--', process.execPath, UPSTREAM, contacts, data];
    const spoken = speaks(words, ownClient);
    const { end } = spoken;
    await end.ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities,
      clientInfo: { name: 'test', version: '1' },
    });
    end.notify('notifications/initialized', {});
    await end.ask('tools/list', {});
    return spoken;
  }

  return {
    data,
    config,
    url: () => gateway.url,
    token: () => gateway.token,
    approver,
    reader,
    command,
    speaks,
    client: async (capabilities = {}) => (await greeted(capabilities, true)).end,
    asAgent: () => greeted({}, false),
    asked: () =>
      new Promise((found) => {
        const next = reported.shift();
        if (next) found(next);
        else waiting.push(found);
      }),
    async rest(path, bearer, body) {
      const response = await fetch(`${gateway.url}${path}`, {
        method: body ? 'POST' : 'GET',
        headers: {
          authorization: `Bearer ${bearer}`,
          'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
          'content-type': 'application/json',
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, text, body: JSON.parse(text) as Record<string, unknown> };
    },
    contacts: () => readContacts(contacts),
    violations: () => checkActs(data, readContacts(contacts)),
    holding: (text) => filesBelow(data).filter((file) => readFileSync(file).includes(text)),
    kept: () => filesBelow(join(data, 'pending-acts')),
    async restart() {
      gateway.child.kill('SIGKILL');
      await gateway.ended;
      await serve();
    },
    async close() {
      const left = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
      await Promise.all(
        left.map((child) => {
          const over = new Promise((done) => child.once('close', done));
          if (clients.has(child)) child.stdin?.end();
          else child.kill('SIGKILL');
          return over;
        }),
      );
      channel.closeAllConnections();
      channel.close();
      forgetLogs();
      rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

function configuration(hook: string): string {
  return `rules:
  - { id: other, when: {}, then: allow }
  - { id: people-decide, when: { kind: [tool, fs.write, terminal] }, then: ask, say: "a person looks at this" }
approvals:
  webhooks: { duty: { url: "${hook}", secret: duty, links: true } }
`;
}

async function listening(take: (body: string) => void): Promise<Server> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      take(Buffer.concat(chunks).toString('utf8'));
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

function filesBelow(dir: string): string[] {
  try {
    return readdirSync(dir, { recursive: true })
      .map((name) => join(dir, String(name)))
      .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile());
  } catch {
    return [];
  }
}
