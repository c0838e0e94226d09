/**
 * The tools of the fixture server: those the official suite calls by name, and a few of our own for what the suite does
 * not look at (fields and blocks nobody knows, what arrived with a call, calls that are given up).
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  ask,
  type Call,
  form,
  key,
  type Loose,
  lacking,
  type Question,
  remembered,
  roots,
  rpcError,
  sample,
  schema,
  text,
  yesNo,
} from './mcp-fixture-asking.ts';
import { audio, enclosed, image, said } from './mcp-fixture-shelf.ts';
import { requireTasks, startTask, takesTasks } from './mcp-fixture-tasks.ts';

interface Tool {
  readonly takes?: Loose;
  readonly more?: Loose;
  /** Whether it is a task, by the word of 2025-11-25. */
  readonly support?: 'optional' | 'required';
  run(call: Call): Loose | Promise<Loose>;
}

const says = (words: string): Loose => ({ content: [said(words)] });
const shows = (value: unknown): Loose => says(JSON.stringify(value));

async function logs(call: Call, data: string): Promise<void> {
  if (call.era === 'modern' && !call.context.mcpReq.envelope?.[key('logLevel') as never]) return;
  await call.context.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
}

/** A tool that asks one thing and says what it was told. */
const asks = (name: string, question: Question, say: (answer: Loose) => string): Tool => ({
  run: async (call) => says(say((await ask(call, { [name]: question }))[name])),
});

const options = ['option1', 'option2', 'option3'];
const titled = (word: string) => [1, 2, 3].map((count) => ({ const: `value${count}`, title: `${word} ${count}` }));
let givenUp = 0;

export const TOOLS: Readonly<Record<string, Tool>> = {
  test_simple_text: { run: () => says('a simple answer') },
  test_image_content: { run: () => ({ content: [image] }) },
  test_audio_content: { run: () => ({ content: [audio] }) },
  test_embedded_resource: { run: () => ({ content: [enclosed('test://enclosed', 'an enclosed text')] }) },
  test_multiple_content_types: {
    run: () => ({
      content: [said('words, then more'), image, enclosed('test://mixed', '{"n":1}', 'application/json')],
    }),
  },
  test_error_handling: { run: () => ({ ...says('this never works'), isError: true }) },
  test_tool_with_logging: {
    async run(call) {
      for (const words of ['it begins', 'it goes on', 'it ends']) {
        await logs(call, words);
        await pause(50);
      }
      return says('three messages were logged');
    },
  },
  test_logging_tool: {
    async run(call) {
      await logs(call, 'one message');
      return says('one message was logged');
    },
  },
  test_tool_with_progress: {
    async run({ context }) {
      const progressToken = context.mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
        if (progressToken !== undefined) await context.mcpReq.notify({ method: 'notifications/progress', params });
        await pause(50);
      }
      return says('all of it is done');
    },
  },
  test_sampling: {
    takes: schema({ prompt: text }, ['prompt']),
    async run(call) {
      const { sampled } = await ask(call, { sampled: sample(call.args.prompt) });
      return says(`a model said: ${sampled.content?.text}`);
    },
  },
  test_elicitation: {
    takes: schema({ message: text }, ['message']),
    async run(call) {
      const fields = { username: { ...text, description: 'who' }, email: { ...text, description: 'where' } };
      return shows((await ask(call, { told: form(call.args.message, fields) })).told);
    },
  },
  test_elicitation_sep1034_defaults: asks(
    'told',
    form(
      'All of this is already filled in.',
      {
        name: { ...text, default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { ...text, enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { ...yesNo, default: true },
      },
      [],
    ),
    JSON.stringify,
  ),
  test_elicitation_sep1330_enums: asks(
    'told',
    form(
      'One or several of each.',
      {
        untitledSingle: { ...text, enum: options },
        titledSingle: { ...text, oneOf: titled('Option') },
        legacyEnum: { ...text, enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
        untitledMulti: { type: 'array', items: { ...text, enum: options } },
        titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
      },
      [],
    ),
    JSON.stringify,
  ),
  json_schema_2020_12_tool: {
    takes: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: { address: { $anchor: 'addressDef', ...schema({ street: text }) } },
      properties: { kind: text, address: { $ref: '#/$defs/address' }, tag: text },
      allOf: [{ anyOf: [{ required: ['kind'] }, { required: ['tag'] }] }],
      if: { required: ['kind'] },
      then: { required: ['kind'] },
      else: { required: ['tag'] },
      additionalProperties: false,
    },
    run: () => says('it fits'),
  },
  test_reconnection: {
    async run({ context }) {
      context.http?.closeSSE?.();
      await pause(100);
      return says('still here after the stream was cut');
    },
  },
  test_missing_capability: {
    run({ abilities }) {
      if (!abilities.sampling) throw lacking({ sampling: {} });
      return says('the caller can sample');
    },
  },
  test_streaming_elicitation: asks('told', form('Shall it go on?', { ok: yesNo }), JSON.stringify),
  test_trigger_tool_change: { run: (call) => changing(call, 'tools') },
  test_trigger_prompt_change: { run: (call) => changing(call, 'prompts') },
  test_x_mcp_header: {
    takes: schema({ region: { ...text, 'x-mcp-header': 'Region' } }),
    run: ({ args }) => says(`in ${args.region}`),
  },

  test_input_required_result_elicitation: asks(
    'user_name',
    form('Who is there?', { name: text }),
    ({ content }) => `it is ${content?.name}`,
  ),
  test_input_required_result_sampling: asks(
    'capital_question',
    sample('What is the capital of Peru?'),
    ({ content }) => content?.text ?? '',
  ),
  test_input_required_result_list_roots: asks('client_roots', roots, (told) => JSON.stringify(told.roots)),
  test_input_required_result_request_state: {
    async run(call) {
      const memory = remembered(call);
      await ask(call, { confirm: form('Sure?', { ok: yesNo }) }, 'asked');
      if (call.era === 'modern' && memory !== 'asked') throw rpcError(-32602, 'the request state is missing');
      return says('state-ok');
    },
  },
  test_input_required_result_tampered_state: {
    async run(call) {
      remembered(call);
      await ask(call, { confirm: form('Sure?', { ok: yesNo }) }, 'asked');
      return says('untouched');
    },
  },
  test_input_required_result_multiple_inputs: {
    async run(call) {
      const three = {
        user_name: form('Who?', { name: text }),
        greeting: sample('Say hello.', 50),
        client_roots: roots,
      };
      await ask(call, three, 'three');
      return says('all three were answered');
    },
  },
  test_input_required_result_multi_round: { run: twoRounds },
  test_input_required_result_capabilities: {
    async run(call) {
      await ask(call, {
        ...(call.abilities.sampling && { sampled: sample('Say hello.') }),
        ...(call.abilities.elicitation && { told: form('Go on?', { ok: yesNo }) }),
      });
      return says('asked no more than was offered');
    },
  },

  greet: { takes: schema({ name: text }), run: ({ args }) => says(`Hello, ${args.name}!`) },
  slow_compute: {
    support: 'optional',
    takes: schema({ seconds: { type: 'number' } }),
    async run(call) {
      const ms = (call.args.seconds ?? 0) * 1_000;
      const finish = async (wait: Promise<void>) => {
        await wait;
        return says('computed');
      };
      return takesTasks(call) ? startTask((working) => finish(working.wait(ms))) : await finish(pause(ms));
    },
  },
  failing_job: task(async (working) => {
    await working.wait(1_000);
    return { ...says('the job did not work'), isError: true };
  }),
  protocol_error_job: task(async (working) => {
    await working.wait(200);
    throw rpcError(-32603, 'the job broke');
  }),
  confirm_delete: {
    support: 'required',
    takes: schema({ filename: text }),
    run: task(async (working, { args }) =>
      shows(await working.ask({ confirm: form(`Delete ${args.filename}?`, { confirm: yesNo }) })),
    ).run,
  },
  multi_input: task(async (working) =>
    shows(await working.ask({ one: form('One?', { confirm: yesNo }), two: form('Two?', { confirm: yesNo }) })),
  ),
  test_tool_with_task: {
    support: 'required',
    async run(call) {
      requireTasks(call);
      const { user_name: told } = await ask(call, { user_name: form('Who?', { name: text }) }, 'first');
      return startTask(async () => shows(told.content));
    },
  },

  echo: {
    takes: { type: 'object' },
    more: {
      title: 'Echo',
      annotations: { readOnlyHint: true, openWorldHint: false, 'x-note': 'kept' },
      _meta: { 'example.org/kept': [1, { two: 2 }] },
      'x-unknown': { kept: true },
    },
    run: ({ args, context }) => ({
      ...shows(args),
      structuredContent: { args, meta: context.mcpReq._meta ?? {} },
      _meta: { 'example.org/result': 'kept' },
      'x-unknown': 'kept',
    }),
  },
  odd_blocks: {
    run: () => ({
      content: [
        { type: 'hologram', 'x-depth': 3, data: { any: ['thing', null, 1.5] } },
        { ...said('words'), annotations: { audience: ['assistant'], 'x-note': 'kept' }, 'x-note': 'kept' },
        { type: 'resource_link', uri: 'test://static-text', name: 'a text', 'x-note': 'kept' },
      ],
      'x-unknown': 'kept',
    }),
  },
  say_on_the_way: {
    takes: schema({ word: text }, ['word']),
    async run({ args, context: { mcpReq } }) {
      const progressToken = mcpReq._meta?.progressToken;
      for (const progress of [1, 2]) {
        const params = { progressToken, progress, message: args.word };
        if (progressToken !== undefined) await mcpReq.notify({ method: 'notifications/progress', params });
      }
      return says(args.word);
    },
  },
  what_arrived: {
    run: ({ context }) => shows({ authorization: context.http?.req?.headers.get('authorization') ?? null }),
  },
  wait_until_given_up: {
    async run({ context: { mcpReq } }) {
      const given = new Promise<never>((_, reject) => {
        mcpReq.signal.addEventListener('abort', () => {
          givenUp += 1;
          reject(rpcError(-32603, 'given up'));
        });
      });
      // Says that it waits, so that nobody gives up before it does.
      const params = { progressToken: mcpReq._meta?.progressToken, progress: 1 };
      await mcpReq.notify({ method: 'notifications/progress', params });
      return await given;
    },
  },
  how_many_given_up: { run: () => shows({ givenUp }) },
};

function changing(call: Call, list: 'tools' | 'prompts'): Loose {
  call.changed(list);
  return says('told everyone');
}

/** Two questions one after the other; what the first was answered travels in the request state. */
async function twoRounds(call: Call): Promise<Loose> {
  const first = { step1: form('First, a name.', { name: text }) };
  const second = { step2: form('Then, a colour.', { color: text }) };
  const memory = remembered(call) as { name?: string } | undefined;
  if (call.era === 'legacy') {
    const { step1 } = await ask(call, first);
    const { step2 } = await ask(call, second);
    return says(`${step1.content?.name} likes ${step2.content?.color}`);
  }
  if (!memory) {
    await ask(call, first, {});
    throw rpcError(-32602, 'the request state is missing');
  }
  const told = call.context.mcpReq.inputResponses?.step1 as Loose | undefined;
  const name = memory.name ?? told?.content?.name;
  const { step2 } = await ask(call, second, { name });
  return says(`${name} likes ${step2.content?.color}`);
}

function task(work: (working: Parameters<Parameters<typeof startTask>[0]>[0], call: Call) => Promise<Loose>): Tool {
  return {
    support: 'required',
    run(call) {
      requireTasks(call);
      return startTask((working) => work(working, call));
    },
  };
}

export function listTools(olderTasks: boolean): Loose {
  const tools = Object.entries(TOOLS).map(([name, { takes = schema(), more, support }]) => ({
    name,
    description: `${name} for tests`,
    inputSchema: takes,
    ...(olderTasks && support && { execution: { taskSupport: support } }),
    ...more,
  }));
  return { tools };
}

export async function callTool(call: Call): Promise<Loose> {
  const tool = Object.hasOwn(TOOLS, call.params.name) ? TOOLS[call.params.name] : undefined;
  if (!tool) throw rpcError(-32602, 'there is no such tool');
  return await tool.run(call);
}
