/** The built gateway as a process, with an instrumented tool server behind it, for tests that come from outside. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { type Contact, checkActs, readContacts, readEvents } from '../oracle/oracle.ts';
import { aDirectory, program, startGateway } from './cli.ts';

export const PROTOCOL_VERSION = 'agents-protocol-2026-04-25';
export const MCP_REVISION = '2026-07-28';
const SERVER = fileURLToPath(new URL('../upstreams/tool-server.mjs', import.meta.url));
const AGENT = fileURLToPath(new URL('../upstreams/recording-agent.mjs', import.meta.url));

export const MCP_META = {
  'io.modelcontextprotocol/protocolVersion': MCP_REVISION,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'outsider', version: '1' },
};

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: JsonObject;
}

export interface Serving {
  readonly url: string;
  readonly token: string;
  /** Where its log and keys are. */
  readonly data: string;
  readonly pid: number;
  /** One request as the holder of the printed token, unless the headers say otherwise. */
  send(path: string, options?: { method?: string; headers?: Record<string, string>; body?: unknown }): Promise<Answer>;
  /** A call of a tool of the instrumented server. */
  call(tool: string, args: JsonObject): Promise<Answer>;
  contacts(): readonly Contact[];
  /** The words of all work that the recording agent was given, in order. */
  input(): readonly string[];
  /** A key, as `keys create NAME ...` makes it. */
  key(name: string, ...options: string[]): Promise<string>;
  events(...kinds: string[]): Promise<CoreEvent[]>;
  /** Contacts the log does not cover. */
  violations(): Promise<string[]>;
  /** Waits for its end; resolves with what it wrote to standard error. */
  stop(signal?: NodeJS.Signals): Promise<string>;
  /** Another process on the same configuration and data. */
  again(): Promise<Serving>;
}

export interface ServingOptions {
  /** More of the configuration, as YAML. */
  readonly config?: string;
  readonly rules?: string;
  readonly env?: Record<string, string>;
  readonly shell?: string;
  readonly dir?: string;
  /** More tool servers than the instrumented one, by name: a command, or all that the configuration says. */
  readonly servers?: Readonly<Record<string, readonly string[] | JsonObject>>;
}

const RULES = `
  - { id: echoes, when: { tool: [echo, read, hang] }, then: allow }
  - { id: pays-ask, when: { tool: pay }, then: ask }
`;

export async function serving(options: ServingOptions = {}): Promise<Serving> {
  const dir = options.dir ?? (await aDirectory());
  const [data, seen, file] = ['data', 'contacts.jsonl', 'gateway.yaml'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  const work = join(dir, 'work.jsonl');
  const servers = { box: [process.execPath, SERVER, seen, data], ...options.servers };
  const tools = Object.entries(servers).map(([name, said]) => [
    name,
    { mcp: Array.isArray(said) ? { command: said } : said },
  ]);
  const agents = { recorder: { acp: { command: [process.execPath, AGENT, work, data], cwd: dir } } };
  const text = [
    `tools: ${JSON.stringify(Object.fromEntries(tools))}`,
    `agents: ${JSON.stringify(agents)}`,
    'demo: true',
    ...(options.config?.includes('default_agent:') ? [] : ['default_agent: demo']),
    `rules:${options.rules ?? RULES}`,
    options.config ?? '',
  ];
  await writeFile(file, text.join('\n'));
  const { child, ended, url, token } = await startGateway(['--config', file, '--data', data], {
    cwd: dir,
    ...(options.env && { env: options.env }),
    ...(options.shell && { shell: options.shell }),
  });

  const send: Serving['send'] = async (path, { method = 'GET', headers = {}, body } = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'harn-agents-protocol-version': PROTOCOL_VERSION,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    });
    const said = await response.text();
    return { status: response.status, headers: response.headers, text: said, json: parsed(said) };
  };

  return {
    url,
    token,
    data,
    pid: child.pid as number,
    send,
    call: (tool, args) =>
      send('/mcp/box', {
        method: 'POST',
        headers: mcpHeaders('tools/call', tool),
        body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: args, _meta: MCP_META } },
      }),
    contacts: () => readContacts(seen),
    input: () => readContacts(work).map(({ arguments: { text } }) => String(text)),
    async key(name, ...more) {
      const made = program(['--config', file, '--data', data, 'keys', 'create', name, ...more, '--json'], { cwd: dir });
      const { out, err } = await made.ended;
      if (!out.includes('"key"')) throw new Error(err);
      return (JSON.parse(out) as { key: string }).key;
    },
    events: (...kinds) => readEvents(data, kinds.length > 0 ? kinds : undefined),
    violations: () => checkActs(data, readContacts(seen)),
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      return (await ended).err;
    },
    again: () => serving({ ...options, dir }),
  };
}

export function mcpHeaders(method: string, name?: string): Record<string, string> {
  return {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MCP_REVISION,
    'mcp-method': method,
    ...(name && { 'mcp-name': name }),
  };
}

function parsed(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return {};
  }
}
