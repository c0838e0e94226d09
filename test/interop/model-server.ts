/**
 * A model that follows a script, on loopback: asked to `RUN: <command>` it calls the first shell tool it was offered, once, and
 * says that it is done when it has the result. Speaks OpenAI's chat completions, streamed, which both agents can be pointed at.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Message {
  readonly role: string;
  readonly content?: unknown;
}
interface Tool {
  readonly function: {
    readonly name: string;
    readonly parameters?: {
      readonly required?: readonly string[];
      readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
    };
  };
}

export interface ModelServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function openModelServer(): Promise<ModelServer> {
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  const {
    messages = [],
    tools = [],
    stream,
  } = (body ? JSON.parse(body) : {}) as { messages?: Message[]; tools?: Tool[]; stream?: boolean };
  const said = reply(messages, tools);
  const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
  const base = { id: 'scripted', created: 1, model: 'fake' };
  if (!stream) {
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        ...base,
        object: 'chat.completion',
        usage,
        choices: [{ index: 0, message: { role: 'assistant', ...said.whole }, finish_reason: said.finish }],
      }),
    );
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  const send = (delta: object, finish: string | null, more: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`,
    );
  send({ role: 'assistant', ...said.delta }, null);
  send({}, said.finish, { usage });
  response.end('data: [DONE]\n\n');
}

function reply(messages: readonly Message[], tools: readonly Tool[]) {
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const [, command] = /RUN: ([^\n"]+)/.exec(JSON.stringify(messages[last]?.content ?? '')) ?? [];
  const done = messages.slice(last + 1).some(({ role }) => role === 'tool');
  const shell = tools.find((tool) => /shell|bash|terminal/i.test(tool.function.name));
  if (!command || done || !shell) {
    const content = done ? 'It is done.' : 'There is nothing to run.';
    return { finish: 'stop', delta: { content }, whole: { content } };
  }
  const { required = [], properties = {} } = shell.function.parameters ?? {};
  const given = Object.fromEntries(
    required.map((name) => [name, properties[name]?.type === 'boolean' ? false : 'scripted']),
  );
  const call = {
    id: `call_${messages.length}_${Buffer.from(command).toString('hex').slice(-8)}`,
    type: 'function',
    function: { name: shell.function.name, arguments: JSON.stringify({ ...given, command }) },
  };
  return {
    finish: 'tool_calls',
    delta: { tool_calls: [{ index: 0, ...call }] },
    whole: { content: null, tool_calls: [call] },
  };
}
