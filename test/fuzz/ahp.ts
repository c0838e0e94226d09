/**
 * Frames of the Agent Harness Protocol, both ways. To the harness: an agent that runs whatever is answered with anything but
 * `block`, reading its own frames leniently. From a harness: answers made wrong, none of which may become a yes.
 */
import { PassThrough } from 'node:stream';
import { createAsking } from '../../adapters/ahp/client/harness-client.ts';
import { lineLink } from '../../adapters/ahp/client/transports.ts';
import { settingsOf } from '../../adapters/ahp/config.ts';
import { createHarness } from '../../adapters/ahp/server/harness.ts';
import { serveLines } from '../../adapters/ahp/server/streams.ts';
import type { AhpEvent } from '../../adapters/ahp/translate.ts';
import type { JsonObject } from '../../src/model/schema.ts';
import { readLines } from '../../src/transport/ndjson/ndjson.ts';
import { type Fuzzed, type FuzzGateway, openGateway, within } from './gateway.ts';
import { leniently, type Step, steps } from './mutations.ts';

const event = (event_type: string, payload: unknown): JsonObject =>
  ({ event_type, session_id: 's', agent_id: 'a', timestamp: '2026-05-01T00:00:00Z', depth: 0, payload }) as JsonObject;
const call = (tool_name: string, word: string) =>
  event('pre_action', { action_type: 'tool_call', tool_name, arguments: { word } });
const asks =
  (params: JsonObject, method = 'ahp/event') =>
  (id: string) => ({ jsonrpc: '2.0', id, method, params });
const tells = (params: JsonObject) => () => ({ jsonrpc: '2.0', method: 'ahp/event', params });

const FRAMES: readonly ((id: string) => object)[] = [
  asks(call('bash', 'ls')),
  asks(call('touch', 'yes')),
  asks(call('touch', 'yes')),
  asks(call('touch', 'no')),
  asks(call('touch', 'other')),
  asks(event('pre_action', { tool: 'bash', args: { command: 'ls' }, working_directory: '/' })),
  asks(event('pre_prompt', { prompt: 'go' })),
  asks(event('idle', { idle_duration_ms: 1, idle_reason: 'r' })),
  asks({ events: [call('touch', 'yes'), event('post_action', {})] as never }, 'ahp/batch'),
  asks({ session_id: 's', agent_id: 'a', query_type: 'q', payload: {} }, 'ahp/query'),
  asks(
    {
      protocol_version: '2.4',
      agent_info: { framework: 'f', version: '1', capabilities: [] },
      session_id: 's',
      agent_id: 'a',
    },
    'ahp/handshake',
  ),
  tells(event('session_start', {})),
  tells(event('post_action', { tool_name: 'bash', arguments: { word: 'ls' }, result: { success: true } })),
  tells(event('post_response', { response_text: 'hi' })),
  tells(event('run_lifecycle', { run_id: 'r', session_id: 's', status: 'executing', updated_at: 't' })),
];

// biome-ignore lint/suspicious/noExplicitAny: what was sent and said is looked into freely
type Said = any;

const WINDOW = 256;
const ANSWER_MS = 10_000;

export async function fuzzAhp({ frames, seed }: { frames: number; seed: number }): Promise<Fuzzed> {
  const gateway = await openGateway();
  const found: string[] = [];
  try {
    const toUs = Math.ceil(frames * 0.8);
    await agents(gateway, toUs, seed, found);
    await harnesses(frames - toUs, seed + 1, found);
    found.push(...(await gateway.verdict()));
    return { frames, violations: found };
  } finally {
    await gateway.close();
  }
}

async function agents(gateway: FuzzGateway, count: number, seed: number, found: string[]): Promise<void> {
  const { runtime, workspace, deps } = gateway;
  const settings = settingsOf({ workspace, timeout_ms: 400, settle_ms: 0, honours: ['modify'] });
  const harness = createHarness(runtime.bridge, settings, deps);
  const [input, output] = [new PassThrough(), new PassThrough()];
  const actor = { id: 'agent:fuzz', kind: 'agent', scopes: ['*'] } as const;
  const serving = serveLines(harness, { input, output }, { actor, log: deps.log, limit: 1 << 20 });
  const answered = new Map<string, (said: Said) => void>();
  const reading = (async () => {
    for await (const line of readLines(output, { limit: 1 << 22 })) {
      const said = JSON.parse(line) as Said;
      if (said.error?.code === -32603) found.push(`an internal error: ${line.slice(0, 300)}`);
      const key = JSON.stringify(said.id);
      answered.get(key)?.(said);
      answered.delete(key);
    }
  })();

  async function send({ frame, mutation, times }: Step, id: string): Promise<void> {
    const made = FRAMES[frame % FRAMES.length] as (id: string) => JsonObject;
    const bytes = Buffer.concat([mutation(made(id)).filter((byte) => byte !== 0x0a) as Buffer, Buffer.from('\n')]);
    const sent = leniently(bytes) as Said;
    const mine = sent?.id === id;
    const answer = mine ? new Promise<Said>((resolve) => answered.set(JSON.stringify(id), resolve)) : undefined;
    for (let time = 0; time < times; time += 1) input.write(bytes);
    if (!answer) return;
    const said = await within(expectsAnswer(sent) ? ANSWER_MS : 0, answer);
    if (said === 'late') {
      answered.delete(JSON.stringify(id));
      if (expectsAnswer(sent)) found.push(`not answered: ${bytes.toString().slice(0, 300)}`);
      return;
    }
    await obey(sent, said.result);
  }

  /** What the agent does with the answer: runs it, unless it is asked to stop. */
  async function obey(sent: Said, result: Said): Promise<void> {
    if (sent.params?.event_type !== 'pre_action' || !result || result.decision === 'block') return;
    const payload = result.modified_payload ?? sent.params.payload;
    const tool = [payload?.tool_name, payload?.tool, payload?.name].find((name) => typeof name === 'string' && name);
    const args = [payload?.arguments, payload?.args, payload?.input].find(isMap);
    if (tool && args) await gateway.contact(tool, args);
  }

  let at = 0;
  let window: Promise<void>[] = [];
  for (const step of steps(count, seed)) {
    window.push(send(step, `f${++at}`));
    if (window.length < WINDOW) continue;
    await Promise.all(window);
    window = [];
  }
  await Promise.all(window);
  const alive = within(ANSWER_MS, new Promise<Said>((resolve) => answered.set('"alive"', resolve)));
  input.write(`${JSON.stringify(asks(call('bash', 'alive'))('alive'))}\n`);
  if (((await alive) as Said)?.result?.decision !== 'allow') found.push('the harness no longer answers');
  input.end();
  await serving;
  output.end();
  await reading;
  await harness.close();
}

function isMap(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A request of a reader that takes anything for one. */
function expectsAnswer(sent: Said): boolean {
  const event = sent.method !== 'ahp/event' || isMap(sent.params);
  return (
    sent.jsonrpc === '2.0' &&
    typeof sent.method === 'string' &&
    sent.params !== undefined &&
    event &&
    !('result' in sent) &&
    !('error' in sent)
  );
}

/** Answers of a harness, made wrong: whatever is not plainly an allow of this question is none. */
async function harnesses(count: number, seed: number, found: string[]): Promise<void> {
  const [toUs, fromUs] = [new PassThrough(), new PassThrough()];
  const link = lineLink(toUs, fromUs, () => {});
  const questions = new Map<string, Step>();
  const RESULTS = [
    { decision: 'allow' },
    { decision: 'block', reason: 'r' },
    { decision: 'escalate' },
    { decision: 'defer', retry_after_ms: 1 },
  ];
  const sent = new Map<string, Said>();
  const answering = (async () => {
    for await (const line of readLines(fromUs, { limit: 1 << 20 })) {
      const { id, method } = JSON.parse(line) as Said;
      if (method === 'ahp/handshake') {
        const result = { protocol_version: '2.4', harness_info: { name: 'h', version: '1', capabilities: [] } };
        toUs.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
        continue;
      }
      const { frame, mutation } = questions.get(id) as Step;
      const bytes = mutation({ jsonrpc: '2.0', id, result: RESULTS[frame % RESULTS.length] as JsonObject });
      sent.set(id, leniently(bytes));
      toUs.write(Buffer.concat([bytes.filter((byte) => byte !== 0x0a) as Buffer, Buffer.from('\n')]));
    }
  })();
  let at = 0;
  const pending: Step[] = [];
  const asking = createAsking(
    link,
    () => {
      const id = `q${++at}`;
      const step = pending.shift();
      if (step) questions.set(id, step);
      return id;
    },
    250,
  );
  // The link would be given up as hung by a harness that says nothing readable; each window gets its own timeout.
  await asking.handshake({ session_id: 's', agent_id: 'a' });
  const question = event('pre_action', { tool: 'bash', arguments: {} }) as unknown as AhpEvent;
  let window: Promise<void>[] = [];
  for (const step of steps(count, seed)) {
    pending.push(step);
    const id = `q${at + 1}`;
    window.push(
      asking.event(question).then(
        (said) => {
          const plain = (sent.get(id) as Said)?.result?.decision;
          if (said.decision === 'allow' && plain !== 'allow')
            found.push(`an allow nobody said: ${JSON.stringify(sent.get(id))}`);
        },
        () => {},
      ),
    );
    if (window.length < WINDOW * 4) continue;
    await Promise.all(window);
    window = [];
    if (asking.cut.aborted) break;
  }
  await Promise.all(window);
  await asking.close();
  toUs.end();
  fromUs.end();
  await answering;
}
