/**
 * A model that follows a script, on loopback: asked to `RUN: <command>` it calls the first shell tool it was offered, asked to
 * `WRITE: <path>` the first tool that writes a file, each once, and says that it is done when it has the result. `RUN OUTSIDE:`
 * asks to leave the sandbox of an agent that has one. To anything else it answers with a sentence.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Asked, DIALECTS, type Reply, type Tool, write } from './model-dialects.ts';

export interface ModelServer {
  /** Where the OpenAI dialects are; the others begin at `origin`. */
  readonly url: string;
  readonly origin: string;
  /** How often it was asked for words, and for what it has none. */
  readonly asked: () => number;
  readonly unknown: () => readonly string[];
  close(): Promise<void>;
}

export const WRITTEN = 'written by a script\n';

export async function openModelServer(): Promise<ModelServer> {
  let asked = 0;
  const unknown: string[] = [];
  const server = createServer((request, response) => {
    void answer(request, response).then((known) => {
      if (known) asked += 1;
      else unknown.push(`${request.method} ${request.url}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${origin}/v1`,
    origin,
    asked: () => asked,
    unknown: () => unknown,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  const path = new URL(request.url ?? '/', 'http://model').pathname;
  const dialect = DIALECTS.find(({ at }) => at.test(path));
  if (request.method !== 'POST' || !dialect) {
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end('{"error":{"message":"not in the script","type":"not_found_error"}}');
    return false;
  }
  const asked = dialect.read(JSON.parse(body), path);
  write(response, dialect, reply(asked), asked.stream);
  return true;
}

let count = 0;

function reply({ entries, tools }: Asked): Reply {
  const id = `scripted${++count}`;
  const last = entries.findLastIndex(({ is, text }) => is === 'user' && ORDER.test(text));
  const [, verb, object] = ORDER.exec(entries[last]?.text ?? '') ?? [];
  if (entries.slice(last + 1).some(({ is }) => is === 'result')) return { id, text: 'It is done.' };
  const runs = verb?.startsWith('RUN') === true;
  const tool = tools.find(({ name }) => (runs ? SHELL : WRITER).test(name));
  if (!object || verb === 'SAY' || !tool) return { id, text: 'There is nothing to run.' };
  const input = {
    ...filled(tool),
    ...(runs ? command(tool, object) : file(tool, object)),
    ...(verb === 'RUN OUTSIDE' && { sandbox_permissions: 'require_escalated', justification: 'it is in the script' }),
  };
  return { id, tool: tool.name, input };
}

const ORDER = /\b(RUN OUTSIDE|RUN|WRITE|SAY): ([^\n"\\<]+)/;
const SHELL = /shell|bash|terminal|^exec_command$/i;
const WRITER = /^write(_file)?$/i;

function command({ properties }: Tool, text: string): object {
  const name = properties.cmd ? 'cmd' : 'command';
  return { [name]: properties[name]?.type === 'array' ? ['bash', '-lc', text] : text };
}

function file({ properties }: Tool, path: string): object {
  const name = Object.keys(properties).find((each) => /path/i.test(each)) ?? 'path';
  return { [name]: path, content: WRITTEN };
}

const filled = ({ required, properties }: Tool): object =>
  Object.fromEntries(required.map((name) => [name, properties[name]?.type === 'boolean' ? false : 'scripted']));
