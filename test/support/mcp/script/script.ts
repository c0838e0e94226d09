/**
 * What the scripted clients of both eras have in common: what they ask, what they answer when asked, and the only things that
 * may differ between a server and the same server behind a gateway, each with its reason.
 */
import { eventually } from '../../eventually.ts';
import type { Loose } from '../fixture/asking.ts';
import type { Received } from '../wire-client.ts';

/** One thing that was said, and everything that came back for it. */
export interface Said {
  readonly step: string;
  readonly status: number;
  readonly type: string;
  readonly frames: readonly Loose[];
}

/** In words nobody knows as well, in both directions. */
export const META: Loose = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'example.org/kept': { deep: [1, null, 'two'] },
};

/** Method, parameters; everything a client can ask of the fixture in either era. */
export const REQUESTS: readonly (readonly [string, Loose?])[] = [
  ['tools/list'],
  ['prompts/list'],
  ['prompts/get', { name: 'test_simple_prompt' }],
  ['prompts/get', { name: 'test_prompt_with_arguments', arguments: { arg1: 'eins', arg2: 'zwei' } }],
  ['prompts/get', { name: 'test_prompt_with_embedded_resource', arguments: { resourceUri: 'test://x' } }],
  ['prompts/get', { name: 'test_prompt_with_image' }],
  ['prompts/get', { name: 'nowhere' }],
  ['resources/list'],
  ['resources/templates/list'],
  ['resources/templates/list', { cursor: 'page two' }],
  ['resources/templates/list', { cursor: 'page three' }],
  ['resources/read', { uri: 'test://static-text' }],
  ['resources/read', { uri: 'test://static-binary' }],
  ['resources/read', { uri: 'test://template/7/data' }],
  ['resources/read', { uri: 'test://nowhere' }],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'par' } },
  ],
  ['tools/call', { name: 'echo', arguments: { a: [1, { b: 'ü🌉' }], big: 1e21, none: null }, _meta: META, 'x-own': 1 }],
  ['tools/call', { name: 'odd_blocks' }],
  ['tools/call', { name: 'test_simple_text' }],
  ['tools/call', { name: 'test_image_content', arguments: {} }],
  ['tools/call', { name: 'test_audio_content' }],
  ['tools/call', { name: 'test_embedded_resource' }],
  ['tools/call', { name: 'test_multiple_content_types' }],
  ['tools/call', { name: 'test_error_handling' }],
  ['tools/call', { name: 'test_tool_with_progress', _meta: { progressToken: 'mine' } }],
  ['tools/call', { name: 'test_tool_with_progress', _meta: { progressToken: 7 } }],
  ['tools/call', { name: 'what_arrived' }],
  ['tools/call', { name: 'nowhere' }],
  ['example/unknown', { any: 'thing' }],
];

/** Tools that ask their caller. */
export const ASKING: readonly Loose[] = [
  { name: 'test_sampling', arguments: { prompt: 'Capital of Peru?' } },
  { name: 'test_elicitation', arguments: { message: 'Who are you?' } },
  { name: 'test_elicitation_sep1034_defaults' },
  { name: 'test_elicitation_sep1330_enums' },
  { name: 'test_input_required_result_list_roots' },
  { name: 'test_input_required_result_multiple_inputs' },
  { name: 'test_input_required_result_multi_round' },
];

export const CAPABILITIES: Loose = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true },
  experimental: { 'example.org/trick': { on: true } },
};
export const CLIENT: Loose = { name: 'scripted', version: '1', title: 'Scripted' };

export function answerTo(method: string): Loose {
  if (method === 'sampling/createMessage') {
    return {
      role: 'assistant',
      content: { type: 'text', text: 'Lima' },
      model: 'm',
      stopReason: 'endTurn',
      'x-own': 1,
    };
  }
  if (method === 'roots/list') return { roots: [{ uri: 'file:///r', name: 'r', 'x-own': 1 }] };
  const content = { username: 'ana', email: 'ana@example.org', name: 'Ana', color: 'red', ok: true };
  return { action: 'accept', content, 'x-own': 1 };
}

export function record(step: string, { status, type, frames }: Received): Said {
  return { step, status, type, frames };
}

/** Does it again until what it is for has come. */
export async function until(came: () => boolean, again: () => Promise<unknown>): Promise<void> {
  await eventually(async () => {
    if (!came()) await again();
    return came();
  });
}

interface Rewrite {
  readonly what: string;
  readonly why: string;
  /** Only where the server is spoken to in another era than the client speaks. */
  readonly acrossEras?: true;
  rewrite(said: Said): Said;
}

const members = (names: readonly string[]) => (value: unknown) => replaced(value, (name) => names.includes(name));

function replaced(value: unknown, hide: (name: string) => boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => replaced(each, hide));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, hide(name) ? `<${name}>` : replaced(each, hide)]),
  );
}

const inFrames = (change: (frame: Loose) => unknown) => (said: Said) => ({
  ...said,
  frames: said.frames.map((frame) => change(frame) as Loose),
});

/** The whole list: what is not here must be equal, member by member and in the same order. */
export const REWRITES: readonly Rewrite[] = [
  {
    what: 'an answer as one JSON body or as a stream',
    why: 'the specification leaves it to each server, and nobody can stream before there is something to stream',
    rewrite: (said) => (said.status === 200 ? { ...said, type: 'application/json or text/event-stream' } : said),
  },
  {
    what: 'ids of requests to the client',
    why: 'they belong to the client that sends the request on this connection',
    rewrite: inFrames((frame) => (frame.method && 'id' in frame ? { ...frame, id: '<id>' } : frame)),
  },
  {
    what: 'words about a tool that is not there',
    why: 'a gateway that holds every tool refuses a strange one itself, with the same code',
    rewrite: (said) =>
      said.step.includes('"nowhere"') && said.step.startsWith('tools/call')
        ? inFrames((frame) => ({ ...frame, error: { ...frame.error, message: '<words>' } }))(said)
        : said,
  },
  {
    what: 'words about headers that do not say what the body says',
    why: 'they are refused where they are first read, with the same code and status',
    rewrite: inFrames((frame) => (frame.error?.code === -32020 ? { ...frame, error: { code: -32020 } } : frame)),
  },
  {
    what: 'requestState',
    why: 'it is opaque and the client that asks decides whether it needs one; a gateway knows by it which call waits for the answer',
    rewrite: inFrames(({ result, ...frame }) => {
      if (result?.resultType !== 'input_required') return { ...frame, ...(result && { result }) };
      const { requestState: _, ...rest } = result;
      return { ...frame, result: rest };
    }),
  },
  {
    what: 'tasks of 2025-11-25',
    why: 'a server that has tasks in its newer era only has them here for clients of the older one as well; a server of the older one says of its tasks what it says',
    acrossEras: true,
    rewrite(said) {
      if (said.step === 'a task of 2025-11-25') return inFrames(({ error: _, ...frame }) => frame)(said);
      return inFrames(({ result, ...frame }) => ({ ...frame, ...(result && { result: withoutTasks(result) }) }))(said);
    },
  },
  {
    what: 'the span of a traceparent that is echoed',
    why: 'each hop of a trace has a span of its own; the trace is the same',
    rewrite: (said) =>
      JSON.parse(JSON.stringify(said).replace(/(00-[0-9a-f]{32}-)[0-9a-f]{16}(-[0-9a-f]{2})/g, '$1span$2')) as Said,
  },
  {
    what: 'taskId, createdAt, lastUpdatedAt',
    why: 'they are made anew for every task',
    rewrite: inFrames(members(['taskId', 'createdAt', 'lastUpdatedAt'])),
  },
];

function withoutTasks({ capabilities, tools, ...result }: Loose): Loose {
  const { tasks: _t, ...others } = capabilities ?? {};
  return {
    ...result,
    ...(capabilities && { capabilities: others }),
    ...(tools && { tools: tools.map(({ execution: _e, ...tool }: Loose) => tool) }),
  };
}

export function comparable(transcript: readonly Said[], acrossEras = true): readonly Said[] {
  const rewrites = REWRITES.filter((each) => acrossEras || !each.acrossEras);
  return transcript.map((said) => rewrites.reduce((so, { rewrite }) => rewrite(so), said));
}
