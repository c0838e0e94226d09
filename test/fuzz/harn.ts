/** Requests and socket frames of the Agents Protocol, made wrong, to an agent whose one act goes through the gate. */
import { WebSocket } from 'ws';
import { harn } from '../../adapters/harn/index.ts';
import type { JsonObject } from '../../src/model/schema.ts';
import { type Fuzzed, openGateway, TOKEN } from './gateway.ts';
import { fuzzHttp, type Protocol } from './http.ts';
import { leniently, type Step, steps } from './mutations.ts';
import { harnAway } from './peers/harn.ts';
import { bothDirections, fuzzAway } from './peers/remote.ts';

const VERSION = 'agents-protocol-2026-04-25';
const VERBS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'];
const speech = (word: string): JsonObject => ({
  input: { role: 'user', parts: [{ type: 'text', text: word, visibility: 'public' }] },
});
const HEADERS = { authorization: `Bearer ${TOKEN}`, 'harn-agents-protocol-version': VERSION };

function rest(): Protocol {
  return {
    headers: HEADERS,
    open: async ({ deps, runtime }) => await harn.parts.door.open({}, { ...deps, name: 'harn' }).open(runtime.bridge),
    async prepare(send) {
      const make = async (path: string, body: JsonObject) => {
        const { text } = await send({ method: 'POST', path, body: Buffer.from(JSON.stringify(body)) });
        return String((JSON.parse(text) as { id?: string }).id);
      };
      const workspace = await make('/v1/workspaces', { name: 'w', root: 'harn://w' });
      const session = await make('/v1/sessions', { workspace_id: workspace });
      const task = await make(`/v1/sessions/${session}/tasks`, speech('yes'));
      const ROUTES: readonly { readonly path: string; readonly body?: JsonObject }[] = [
        { path: `/v1/sessions/${session}/tasks`, body: speech('yes') },
        { path: `/v1/sessions/${session}/tasks`, body: speech('yes') },
        { path: `/v1/sessions/${session}/tasks`, body: speech('no') },
        { path: `/v1/sessions/${session}/tasks`, body: speech('other') },
        { path: '/v1/sessions', body: { workspace_id: workspace } },
        { path: `/v1/tasks/${task}` },
        { path: `/v1/tasks/${task}/cancel`, body: {} },
        { path: `/v1/sessions/${session}/messages`, body: speech('yes').input as JsonObject },
        { path: '/v1/memories', body: { scope: 'workspace', owner_id: workspace, content: 'x', provenance: {} } },
        { path: '/v1/tasks/__proto__' },
        { path: '/v1/constructor/prototype' },
        { path: `/v1/workspaces/${workspace}/files?path=../x`, body: { content: 'x' } },
      ];
      return ({ frame, mutation }) => {
        const route = ROUTES[frame % ROUTES.length] as (typeof ROUTES)[number];
        const usual = route.body ? 'POST' : 'GET';
        const method = frame % 7 === 0 ? (VERBS[frame % VERBS.length] as string) : usual;
        const sent = method === 'GET' || method === 'OPTIONS' ? {} : { body: mutation(route.body ?? {}) };
        return { method, path: route.path, ...sent };
      };
    },
  };
}

const WINDOW = 32;
const ANSWER_MS = 20_000;

/** One socket; every frame with an id that can be read is answered under it. */
async function socket(frames: number, seed: number): Promise<Fuzzed> {
  const gateway = await openGateway();
  const found: string[] = [];
  const { runtime, deps, workspace } = gateway;
  const door = await harn.parts.door.open({}, { ...deps, name: 'harn' }).open(runtime.bridge);
  try {
    const { url } = await (deps.http as unknown as { listen(): Promise<{ url: string }> }).listen();
    const post = async (path: string, body: JsonObject) => {
      const headers = { ...HEADERS, 'content-type': 'application/json' };
      const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      return String(((await answer.json()) as { id?: string }).id);
    };
    const session = await post('/v1/sessions', { workspace_id: workspace });
    const FRAMES: readonly ((id: string) => JsonObject)[] = [
      (id) => ({ type: 'task.submit', id, ...speech('yes') }),
      (id) => ({ type: 'task.submit', id, ...speech('no') }),
      (id) => ({ type: 'task.submit', id, ...speech('other') }),
      (id) => ({ type: 'message.append', id, ...(speech('yes').input as JsonObject) }),
      (id) => ({ type: 'task.cancel', id, task_id: 'task_none' }),
      (id) => ({ type: 'response', id, request_id: 'ask_none', approved: true }),
      (id) => ({ type: 'tools.offer', id, tools: [] }),
      () => ({ type: 'ping', t: 1 }),
      () => ({ type: 'ack' }),
      (id) => ({ type: 'event', id }),
    ];
    const peer = new WebSocket(`${url.replace('http', 'ws')}/v1/sessions/${session}/events/stream`, {
      headers: HEADERS,
    });
    const answered = new Map<string, () => void>();
    peer.on('message', (data) => {
      const said = JSON.parse(String(data)) as { id?: string; type: string; status?: number };
      if (said.type === 'error' && (said.status ?? 0) >= 500 && said.status !== 503)
        found.push(`a failure: ${String(data).slice(0, 300)}`);
      if (said.id) answered.get(said.id)?.();
    });
    await new Promise<void>((resolve, reject) => peer.once('open', resolve).once('error', reject));
    let closed: number | undefined;
    peer.on('close', (code) => {
      closed = code;
    });
    let count = 0;
    const say = async ({ frame, mutation }: Step): Promise<void> => {
      const id = `f${++count}`;
      const made = FRAMES[frame % FRAMES.length] as (id: string) => JsonObject;
      const bytes = mutation(made(id));
      const text = bytes.toString('utf8');
      const sent = leniently(bytes) as JsonObject | undefined;
      const expected = sent?.id === id && !ABOUT_THE_LINE.includes(sent.type) && strictly(text);
      const answer = new Promise<void>((resolve) => answered.set(id, resolve));
      peer.send(text);
      if (!expected) return;
      const timer = setTimeout(() => {
        found.push(`not answered: ${text.slice(0, 300)}`);
        answered.get(id)?.();
      }, ANSWER_MS);
      await answer;
      clearTimeout(timer);
      answered.delete(id);
    };
    let window: Promise<void>[] = [];
    for (const step of steps(frames, seed)) {
      window.push(say(step));
      if (window.length < WINDOW) continue;
      await Promise.all(window);
      window = [];
      if (closed !== undefined) break;
    }
    await Promise.all(window);
    if (closed !== undefined) found.push(`the socket was closed with ${closed}`);
    peer.terminate();
    found.push(...(await gateway.verdict()));
    return { frames, violations: found };
  } finally {
    await door.close();
    await gateway.close();
  }
}

const ABOUT_THE_LINE: readonly unknown[] = ['ping', 'pong', 'ack', 'resume'];

/** Read the same by everybody: no name twice, no mark in front, nothing too deep. */
function strictly(text: string): boolean {
  const value = JSON.parse(text.replace(/^\ufeff/, ''));
  return (
    !text.startsWith('\ufeff') &&
    JSON.stringify(value).length >= text.replace(/\\u00[0-9a-f]{2}/g, 'x').length &&
    !/\[{40}/.test(text)
  );
}

/** Half of the frames come to us, over REST and sockets; half come from remotes that were given work by us. */
export function fuzzHarn(options: { frames: number; seed: number }): Promise<Fuzzed> {
  return bothDirections(toUs, (half) => fuzzAway(harnAway, half), options);
}

async function toUs({ frames, seed }: { frames: number; seed: number }): Promise<Fuzzed> {
  const half = Math.ceil(frames / 2);
  const requests = await fuzzHttp(rest(), { frames: half, seed });
  const talk = await socket(frames - half, seed + 1);
  return { frames, violations: [...requests.violations, ...talk.violations] };
}
