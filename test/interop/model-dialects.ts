/**
 * The wires a model is reached over: what a request asks, read into one shape, and one reply written as each of them streams it.
 * Chat completions and responses (OpenAI), messages (Anthropic), generateContent (Gemini).
 */
import type { ServerResponse } from 'node:http';

type Fields = Readonly<Record<string, unknown>>;

/** One piece of the conversation: words of the user, or the result of a call. */
export interface Entry {
  readonly is: 'user' | 'result' | 'other';
  readonly text: string;
}
export interface Tool {
  readonly name: string;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, { readonly type?: unknown }>>;
}
export interface Asked {
  readonly entries: readonly Entry[];
  readonly tools: readonly Tool[];
  readonly stream: boolean;
}
/** `id` is no other reply's: agents take two messages of one id for the same message. */
export type Reply = { readonly id: string } & (
  | { readonly text: string }
  | { readonly tool: string; readonly input: Fields }
);

export interface Dialect {
  /** Of a path: is it this dialect's? */
  readonly at: RegExp;
  read(body: Fields, path: string): Asked;
  whole(reply: Reply): object;
  /** The events of a stream, named where the dialect names them. */
  events(reply: Reply): readonly { readonly event?: string; readonly data: object | string }[];
}

const list = (value: unknown): readonly Fields[] => (Array.isArray(value) ? (value as Fields[]) : []);
const words = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''));

function tool(name: unknown, schema: unknown): Tool {
  const { required = [], properties = {} } = (schema ?? {}) as Partial<Tool>;
  return { name: String(name), required, properties };
}

const chat: Dialect = {
  at: /\/chat\/completions$/,
  read: ({ messages, tools, stream }) => ({
    entries: list(messages).map(({ role, content }) => ({
      is: role === 'user' ? 'user' : role === 'tool' ? 'result' : 'other',
      text: words(content),
    })),
    tools: list(tools).map(({ function: it }) => tool((it as Fields).name, (it as Fields).parameters)),
    stream: stream === true,
  }),
  whole: (reply) => ({
    ...CHAT,
    id: reply.id,
    object: 'chat.completion',
    usage: CHAT_USAGE,
    choices: [{ index: 0, message: { role: 'assistant', ...chatPart(reply) }, finish_reason: chatEnd(reply) }],
  }),
  events: (reply) => {
    const chunk = (delta: object, finish_reason: string | null) => ({
      ...CHAT,
      id: reply.id,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason }],
    });
    return [
      { data: chunk({ role: 'assistant', ...chatPart(reply) }, null) },
      { data: { ...chunk({}, chatEnd(reply)), usage: CHAT_USAGE } },
      { data: '[DONE]' },
    ];
  },
};
const CHAT = { created: 1, model: 'fake' };
const CHAT_USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const chatEnd = (reply: Reply) => ('text' in reply ? 'stop' : 'tool_calls');
function chatPart(reply: Reply): object {
  if ('text' in reply) return { content: reply.text };
  const called = { name: reply.tool, arguments: JSON.stringify(reply.input) };
  return { content: null, tool_calls: [{ index: 0, id: `call_${reply.id}`, type: 'function', function: called }] };
}

const responses: Dialect = {
  at: /\/responses$/,
  read: ({ input, tools, stream }) => ({
    entries: (typeof input === 'string' ? [{ role: 'user', content: input }] : list(input)).map((item: Fields) => ({
      is: item.role === 'user' ? 'user' : String(item.type).endsWith('_call_output') ? 'result' : 'other',
      text: words(item.content ?? item.output),
    })),
    tools: list(tools)
      .filter(({ type }) => type === 'function')
      .map(({ name, parameters }) => tool(name, parameters)),
    stream: stream === true,
  }),
  whole: (reply) => responseOf(reply),
  events: (reply) => {
    const item = responseItem(reply);
    const named = (event: string, data: object) => ({ event, data: { type: event, ...data } });
    return [
      named('response.created', {
        response: { ...RESPONSE, id: `resp_${reply.id}`, status: 'in_progress', output: [] },
      }),
      named('response.output_item.added', { output_index: 0, item }),
      ...('text' in reply
        ? [
            named('response.output_text.delta', {
              item_id: `item_${reply.id}`,
              output_index: 0,
              content_index: 0,
              delta: reply.text,
            }),
          ]
        : []),
      named('response.output_item.done', { output_index: 0, item }),
      named('response.completed', { response: responseOf(reply) }),
    ];
  },
};
const RESPONSE = { object: 'response', created_at: 1, model: 'fake' };
const RESPONSE_USAGE = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 18,
};
const responseOf = (reply: Reply): object => ({
  ...RESPONSE,
  id: `resp_${reply.id}`,
  status: 'completed',
  output: [responseItem(reply)],
  usage: RESPONSE_USAGE,
});
const responseItem = (reply: Reply): object =>
  'text' in reply
    ? {
        type: 'message',
        id: `item_${reply.id}`,
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: reply.text, annotations: [] }],
      }
    : {
        type: 'function_call',
        id: `item_${reply.id}`,
        call_id: `call_${reply.id}`,
        name: reply.tool,
        arguments: JSON.stringify(reply.input),
        status: 'completed',
      };

const messages: Dialect = {
  at: /\/messages$/,
  read: ({ messages: said, tools, stream }) => ({
    entries: list(said).flatMap(({ role, content }): Entry[] => {
      const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content);
      return blocks.map((block: Fields) => ({
        is: role !== 'user' ? 'other' : block.type === 'tool_result' ? 'result' : 'user',
        text: words(block.text ?? block.content),
      }));
    }),
    tools: list(tools).map(({ name, input_schema }) => tool(name, input_schema)),
    stream: stream === true,
  }),
  whole: (reply) => ({
    ...MESSAGE,
    id: `msg_${reply.id}`,
    content: [messageBlock(reply)],
    stop_reason: messageEnd(reply),
    usage: { input_tokens: 11, output_tokens: 7 },
  }),
  events: (reply) => {
    const named = (event: string, data: object) => ({ event, data: { type: event, ...data } });
    const [empty, delta] =
      'text' in reply
        ? [
            { type: 'text', text: '' },
            { type: 'text_delta', text: reply.text },
          ]
        : [
            { ...messageBlock(reply), input: {} },
            { type: 'input_json_delta', partial_json: JSON.stringify(reply.input) },
          ];
    return [
      named('message_start', {
        message: {
          ...MESSAGE,
          id: `msg_${reply.id}`,
          content: [],
          stop_reason: null,
          usage: { input_tokens: 11, output_tokens: 1 },
        },
      }),
      named('content_block_start', { index: 0, content_block: empty }),
      named('content_block_delta', { index: 0, delta }),
      named('content_block_stop', { index: 0 }),
      named('message_delta', {
        delta: { stop_reason: messageEnd(reply), stop_sequence: null },
        usage: { output_tokens: 7 },
      }),
      named('message_stop', {}),
    ];
  },
};
const MESSAGE = { type: 'message', role: 'assistant', model: 'fake', stop_sequence: null };
const messageEnd = (reply: Reply) => ('text' in reply ? 'end_turn' : 'tool_use');
const messageBlock = (reply: Reply): object =>
  'text' in reply
    ? { type: 'text', text: reply.text }
    : { type: 'tool_use', id: `toolu_${reply.id}`, name: reply.tool, input: reply.input };

const gemini: Dialect = {
  at: /:(stream)?[gG]enerateContent$/,
  read: ({ contents, tools }, path) => ({
    entries: list(contents).flatMap(({ role, parts }) =>
      list(parts).map(
        ({ text, functionResponse }): Entry => ({
          is: functionResponse ? 'result' : role === 'user' ? 'user' : 'other',
          text: words(text ?? functionResponse),
        }),
      ),
    ),
    tools: list(tools)
      .flatMap(({ functionDeclarations }) => list(functionDeclarations))
      .map(({ name, parametersJsonSchema, parameters }) => tool(name, parametersJsonSchema ?? parameters)),
    stream: path.endsWith(':streamGenerateContent'),
  }),
  whole: (reply) => {
    const part =
      'text' in reply
        ? { text: reply.text }
        : { functionCall: { id: `call_${reply.id}`, name: reply.tool, args: reply.input } };
    return {
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
      modelVersion: 'fake',
    };
  },
  events: (reply) => [{ data: gemini.whole(reply) }],
};

export const DIALECTS: readonly Dialect[] = [chat, responses, messages, gemini];

export function write(response: ServerResponse, dialect: Dialect, reply: Reply, stream: boolean): void {
  if (!stream) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(dialect.whole(reply)));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  for (const { event, data } of dialect.events(reply)) {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    response.write(`${event ? `event: ${event}\n` : ''}data: ${text}\n\n`);
  }
  response.end();
}
