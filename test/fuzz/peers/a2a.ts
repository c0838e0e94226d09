/**
 * An A2A agent as a sound one would be, on each binding and revision our client speaks over HTTP: streaming, polled, and one that
 * calls back. Cards, answers, streams and notifications all come from here.
 */
import { a2aBackend } from '../../../adapters/a2a/client/backend.ts';
import type { A2aBackendConfig } from '../../../adapters/a2a/client/config.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { steps } from '../mutations.ts';
import type { Asked, Question, Said } from './peer.ts';
import type { Away, Notes } from './remote.ts';

const TIMEOUTS = { request_ms: 1_000, poll_ms: 20, push_poll_ms: 60, silence_ms: 1_500, cancel_ms: 200 };
const WORDS = ['yes', 'yes', 'no', 'ask', 'other'];
/** How each agent is spoken to, by its name. */
const KINDS = ['rpc', 'rest', 'old', 'poll', 'push'] as const;
type Kind = (typeof KINDS)[number];
const kindOf = (agent: string): Kind => KINDS.find((kind) => agent.startsWith(kind)) ?? 'rpc';

interface Work {
  readonly id: string;
  readonly contextId: string;
  /** What it says, in order; the last one ends it. */
  readonly says: readonly JsonObject[];
  at: number;
  looks: number;
}

export const a2aAway: Away = {
  agents: Array.from({ length: 20 }, (_, index) => `${KINDS[index % KINDS.length]}${index}`),
  backend(name, url, deps, own) {
    const config: A2aBackendConfig = {
      url,
      timeouts: TIMEOUTS,
      ...(kindOf(name) === 'rest' && { binding: 'HTTP+JSON' as const }),
      ...(kindOf(name) === 'push' && { push: { public_url: own } }),
    };
    return a2aBackend(name, config, deps);
  },
  peer(notes) {
    const works = new Map<string, Work>();
    const byMessage = new Map<string, Work>();
    const calls = endlessCalls();

    /** Undefined for a message about work that the peer never had. */
    function begin(agent: string, message: JsonObject): Work | undefined {
      const key = String(message.messageId);
      const known = byMessage.get(key) ?? works.get(String(message.taskId ?? ''));
      if (known || message.taskId) return known;
      notes.see(agent, textIn(message));
      const made = workOf(`t${works.size}`, notes);
      works.set(made.id, made);
      byMessage.set(key, made);
      return made;
    }

    function received(message: JsonObject): void {
      for (const part of partsIn(message)) {
        const { askId, approved } = (part.data ?? {}) as JsonObject;
        if (approved === true && typeof askId === 'string') notes.approved(askId, message.messageId);
      }
    }

    /** The next things, up to the question and from there to the end. */
    function rest(work: Work): readonly JsonObject[] {
      const left = work.says.slice(work.at);
      const stop = left.findIndex((said) => JSON.stringify(said).includes('INPUT_REQUIRED'));
      const now = stop >= 0 ? left.slice(0, stop + 1) : left;
      work.at += now.length;
      return now.length > 0 ? now : [{ task: taskNow(work) }];
    }

    return (asked): Said => {
      const { agent, path, method } = asked;
      const kind = kindOf(agent);
      if (path.startsWith('/.well-known/')) return { body: cardOf(`http://${asked.headers.host}/${agent}`, kind) };
      const called = kind === 'rest' ? restCall(asked) : rpcCall(asked);
      const wrapped = (result: JsonObject): JsonObject => {
        const reported = kind === 'old' ? older(result) : result;
        return kind === 'rest' ? reported : { jsonrpc: '2.0', id: called.id as string, result: reported };
      };
      const streams = (work: Work): Said => ({
        about: work.id,
        stream: rest(work).map((data) => ({ data: wrapped(data) })),
      });
      if (called.name === 'send' || called.name === 'stream') {
        const { message } = called.params as { message: JsonObject };
        received(message);
        const work = begin(agent, message);
        if (!work) return { body: missing(kind, called.id) };
        if (called.name === 'stream') return streams(work);
        return { about: work.id, body: wrapped({ task: taskNow(work) }) };
      }
      const work = works.get(String(called.params.id ?? called.params.taskId ?? ''));
      if (!work) return { status: method === 'GET' ? 404 : 200, body: missing(kind, called.id) };
      if (called.name === 'subscribe') return streams(work);
      if (called.name === 'push') {
        const { url, token } = called.params as { url?: string; token?: string };
        call(url, token, work);
        return { about: work.id, body: wrapped(called.params) };
      }
      work.looks += 1;
      rest(work);
      if (called.name === 'cancel') return { about: work.id, body: bare(kind, wrapped, taskNow(work, 'CANCELED')) };
      return { about: work.id, body: bare(kind, wrapped, taskNow(work)) };
    };

    /** Notifications, made wrong as well: whatever they say, the gateway only looks. */
    function call(url: string | undefined, token: string | undefined, work: Work): void {
      if (!url || !token) return;
      const body = calls()({ task: taskNow(work) });
      const headers = { 'content-type': 'application/json', 'x-a2a-notification-token': token };
      setTimeout(() => {
        fetch(url, { method: 'POST', headers, body: new Uint8Array(body), signal: AbortSignal.timeout(2_000) }).then(
          (answer) => answer.body?.cancel(),
          () => {},
        );
      }, 5).unref();
    }
  },
  questionsIn,
};

function endlessCalls() {
  let seed = 1;
  return () => {
    seed += 1;
    const [step] = steps(1, seed);
    return (step as { mutation: (frame: JsonObject) => Buffer }).mutation;
  };
}

/** Task results stand alone; stream answers and results of sending are wrapped by what they are. */
function bare(kind: Kind, wrapped: (result: JsonObject) => JsonObject, task: JsonObject): JsonObject {
  if (kind === 'rest') return task;
  if (kind === 'old') return wrapped({ task });
  return wrapped(task);
}

function missing(kind: Kind, id: unknown): JsonObject {
  if (kind === 'rest') return { error: { code: 404, status: 'NOT_FOUND', message: 'no such task' } };
  return { jsonrpc: '2.0', id: id as string, error: { code: -32001, message: 'no such task' } };
}

interface Called {
  readonly name: 'send' | 'stream' | 'get' | 'cancel' | 'subscribe' | 'push';
  readonly id: unknown;
  readonly params: JsonObject;
}

function rpcCall({ body }: Asked): Called {
  const method = String(body.method);
  const names: readonly [RegExp, Called['name']][] = [
    [/SendStreaming|message\/stream/, 'stream'],
    [/SendMessage|message\/send/, 'send'],
    [/Subscribe|resubscribe/, 'subscribe'],
    [/Cancel|cancel/, 'cancel'],
    [/PushNotification|pushNotification/, 'push'],
  ];
  const name = names.find(([pattern]) => pattern.test(method))?.[1] ?? 'get';
  return { name, id: body.id, params: (body.params ?? {}) as JsonObject };
}

function restCall({ path, body }: Asked): Called {
  if (path.endsWith(':stream')) return { name: 'stream', id: null, params: body };
  if (path.endsWith(':send')) return { name: 'send', id: null, params: body };
  const [, id = '', verb] = /\/tasks\/([^/:]*)(?::(\w+))?/.exec(path) ?? [];
  const name = verb === 'cancel' ? 'cancel' : verb === 'subscribe' ? 'subscribe' : 'get';
  return { name: path.includes('push') ? 'push' : name, id: null, params: { ...body, id: decodeURIComponent(id) } };
}

function cardOf(url: string, kind: Kind): JsonObject {
  const streaming = kind !== 'poll' && kind !== 'push';
  const about = { name: 'peer', description: 'a peer', version: '1', defaultInputModes: ['text/plain'] };
  const more = { defaultOutputModes: ['text/plain'], skills: [] };
  const capabilities = { streaming, pushNotifications: kind === 'push' };
  if (kind === 'old')
    return {
      ...about,
      ...more,
      protocolVersion: '0.3.0',
      url: `${url}/rpc`,
      preferredTransport: 'JSONRPC',
      capabilities,
    };
  const binding = kind === 'rest' ? 'HTTP+JSON' : 'JSONRPC';
  const supportedInterfaces = [{ url: `${url}/rpc`, protocolBinding: binding, protocolVersion: '1.0' }];
  return { ...about, ...more, supportedInterfaces, capabilities };
}

/** A card that is made wrong may lead to the REST binding of 0.3, where they are called `content`. */
function partsIn({ parts, content }: JsonObject): JsonObject[] {
  return (parts ?? content ?? []) as JsonObject[];
}

function textIn(message: JsonObject): string {
  return String(partsIn(message)[0]?.text);
}

function workOf(id: string, { random }: Notes): Work {
  const contextId = `c-${id}`;
  const word = `${WORDS[random(WORDS.length)]} ${random(1e6)}`;
  const at = { taskId: id, contextId };
  const status = (state: string, parts?: JsonObject[]): JsonObject => ({
    statusUpdate: {
      ...at,
      status: {
        state,
        timestamp: '2026-04-25T00:00:00.000Z',
        ...(parts && { message: { messageId: `${id}-${state}`, role: 'ROLE_AGENT', parts } }),
      },
    },
  });
  const chunk = (n: number): JsonObject => ({
    artifactUpdate: {
      ...at,
      artifact: { artifactId: 'out', name: 'answer', parts: [{ text: `word ${n} ` }] },
      append: n > 0,
      lastChunk: n === 9,
    },
  });
  const question = {
    askId: `ask-${id}`,
    kind: 'approval',
    question: 'May it?',
    action: { tool: 'touch', arguments: { word }, effect: 'write' },
  };
  const file = { raw: Buffer.from('bytes').toString('base64'), mediaType: 'text/plain', filename: 'f.txt' };
  return {
    id,
    contextId,
    at: 0,
    looks: 0,
    says: [
      { task: { id, contextId, status: { state: 'TASK_STATE_SUBMITTED' } } },
      status('TASK_STATE_WORKING', [{ text: 'on it' }]),
      ...Array.from({ length: 10 }, (_, n) => chunk(n)),
      status('TASK_STATE_INPUT_REQUIRED', [{ data: question }]),
      status('TASK_STATE_WORKING'),
      { artifactUpdate: { ...at, artifact: { artifactId: 'file', name: 'f', parts: [file, { data: { a: [1] } }] } } },
      ...Array.from({ length: 6 }, (_, n) => status('TASK_STATE_WORKING', [{ text: `step ${n}` }])),
      status(random(4) === 0 ? 'TASK_STATE_FAILED' : 'TASK_STATE_COMPLETED', [{ text: 'over' }]),
    ],
  };
}

function taskNow({ id, contextId, says, at, looks }: Work, state?: string): JsonObject {
  const seen = says.slice(0, Math.max(1, at)).flatMap((said) => {
    const { status } = (said.statusUpdate ?? {}) as JsonObject;
    return status ? [status as JsonObject] : [];
  });
  const over = looks > 4 ? { state: 'TASK_STATE_COMPLETED' } : undefined;
  const status = state ? { state: `TASK_STATE_${state}` } : (over ?? seen.at(-1) ?? { state: 'TASK_STATE_WORKING' });
  return { id, contextId, status, artifacts: [], history: [] };
}

/** As 0.3 spells it. */
function older(result: JsonObject): JsonObject {
  const state = (word: unknown) =>
    String(word)
      .replace(/^TASK_STATE_/, '')
      .toLowerCase()
      .replace('_', '-');
  const part = (it: JsonObject): JsonObject =>
    'text' in it
      ? { kind: 'text', text: it.text }
      : 'raw' in it
        ? { kind: 'file', file: { bytes: it.raw, mimeType: it.mediaType, name: it.filename } }
        : { kind: 'data', data: it.data };
  const message = (it: JsonObject): JsonObject => ({
    kind: 'message',
    messageId: it.messageId,
    role: 'agent',
    parts: (it.parts as JsonObject[]).map(part),
  });
  const status = (it: JsonObject): JsonObject => ({
    ...it,
    state: state(it.state),
    ...(it.message ? { message: message(it.message as JsonObject) } : {}),
  });
  const { task, statusUpdate, artifactUpdate } = result as Record<string, JsonObject>;
  if (task) return { ...task, kind: 'task', status: status(task.status as JsonObject) };
  if (statusUpdate)
    return { ...statusUpdate, kind: 'status-update', final: false, status: status(statusUpdate.status as JsonObject) };
  if (artifactUpdate) {
    const { parts, ...artifact } = artifactUpdate.artifact as JsonObject;
    const reported = { ...artifact, parts: (parts as JsonObject[]).map(part) };
    return { ...artifactUpdate, kind: 'artifact-update', artifact: reported };
  }
  return result;
}

/** Anything with an id of a question, wherever it stands. */
function questionsIn(frame: unknown): Question[] {
  if (typeof frame !== 'object' || frame === null) return [];
  if (Array.isArray(frame)) return frame.flatMap(questionsIn);
  const inner = Object.values(frame).flatMap(questionsIn);
  const { askId, kind, action } = frame as { askId?: unknown; kind?: unknown; action?: JsonObject };
  if (typeof askId !== 'string' || kind !== 'approval') return inner;
  const { tool, arguments: args } = (action ?? {}) as JsonObject;
  const named = typeof tool === 'string' && tool !== '' ? tool : 'unknown';
  const input = typeof args === 'object' && args !== null && !Array.isArray(args) ? (args as JsonObject) : {};
  return [...inner, { id: askId, tool: named, arguments: input }];
}
