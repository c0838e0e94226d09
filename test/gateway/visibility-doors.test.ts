/**
 * What each protocol shows of content by its visibility, read at the real doors: public always, internal where the protocol has a
 * word for it and the credential the scope, for receipts only never, and a word that is not known nowhere at all.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { openWebhooks } from '../../src/inbox/webhook.ts';
import type { Actor } from '../../src/model/actions.ts';
import { type Editor, speak } from '../support/acp/client.ts';
import { latch, scriptedAgent } from '../support/gateway/agents.ts';
import { type AllDoors, openAllDoors } from '../support/gateway/all-doors.ts';
import { openLegacyClient } from '../support/mcp/one-server.ts';
import { openSocket } from '../support/wire/socket-client.ts';
import { type Hook, openHook } from '../support/wire/webhook.ts';

const WORDS = { public: 'Lyon', internal: 'Oslo', receipt_only: 'Riga', pubic: 'Kyiv' } as const;
type Visibility = keyof typeof WORDS;
const KNOWN = ['public', 'internal', 'receipt_only'] as const;

const FAIR = ['sessions', 'tasks', 'events', 'workspaces', 'artifacts', 'memories', 'approvals', 'skills', 'personas'];
const scopes = [...FAIR.map((kind) => `${kind}:*`), 'others:read'];
const PEOPLE: Readonly<Record<string, Actor>> = {
  plain: { id: 'plain', kind: 'service', scopes },
  inner: { id: 'inner', kind: 'service', scopes: [...scopes, 'internal:read'] },
  all: { id: 'all', kind: 'person', scopes: ['*'], interactive: true },
};

const part = (visibility: string, said: string) => ({
  type: 'text',
  text: `${said} ${nameOf(visibility)}`,
  visibility,
});
const nameOf = (visibility: string) => WORDS[visibility as Visibility];
/** Three times a multiple of three bytes, so that its base64 is one text wherever it stands. */
const fileOf = (visibility: Visibility) => Buffer.from(WORDS[visibility].repeat(3));

/** Everything of each visibility that an agent can say, before and after the test lets it go on. */
function speaker() {
  const refused: string[] = [];
  const gate = latch();
  const agent = scriptedAgent(async (sink, work) => {
    const tried = (saying: Promise<unknown>) =>
      saying.then(
        () => refused.push('accepted'),
        (cause) => refused.push(cause.kind),
      );
    const say = (parts: object[]) =>
      sink.emit({ event: 'agent.message', payload: { message: { role: 'assistant', parts } as never } });
    async function everything(when: string): Promise<void> {
      await say(KNOWN.map((word) => part(word, when)));
      for (const visibility of KNOWN) {
        const name = `${when}-${WORDS[visibility]}.log`;
        await sink.artifact({ kind: 'log', mime_type: 'text/plain', name, visibility, bytes: fileOf(visibility) });
      }
      await tried(say([part('pubic', when)]));
      const artifact = { kind: 'file', visibility: 'pubic', uri: 'https://example.test/Kyiv' };
      await tried(sink.emit({ event: 'artifact.created', payload: { artifact: artifact as never } }));
      const bytes = Buffer.from('Kyiv');
      await tried(sink.artifact({ kind: 'file', mime_type: 'a/b', visibility: 'pubic' as never, bytes }));
    }
    await everything('early');
    const said = JSON.stringify(work.task.input);
    if (said.includes('wait')) await gate.promise;
    if (said.includes('mail')) {
      const arguments_ = { to: 'bo' };
      await sink.act(
        { kind: 'tool', tool: 'mail', arguments: arguments_, effect: 'external', evidence: 'held' } as never,
        async () => ({}) as never,
      );
    }
    await everything('late');
    await say([{ type: 'text', text: 'the end', visibility: 'public' }]);
    return undefined;
  });
  return {
    agent,
    refused,
    goOn: () => gate.open(),
  };
}

interface Scene extends AllDoors {
  readonly hook: Hook;
  readonly refused: string[];
  goOn(): void;
  /** JSON in, everything that came back as text. */
  call(who: string, method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<string>;
  /** Everything a stream says until its end, once it has said this. */
  stream(
    who: string,
    path: string,
    until: string,
    more?: { headers?: Record<string, string>; body?: unknown; early?: () => void },
  ): Promise<string>;
}

const HARN = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
const json = (text: string) => JSON.parse(text);

async function scene(): Promise<Scene> {
  const { agent, refused, goOn } = speaker();
  const hook = await openHook();
  const doors = await openAllDoors({
    agents: [agent],
    people: PEOPLE,
    pushTo: [hook.host],
    rules: '- { id: mail, when: { tool: mail }, then: ask }\n- { id: rest, when: {}, then: allow }',
  });
  const headersOf = (who: string, path: string, more: Record<string, string> = {}) => ({
    authorization:
      path.startsWith('/v1/runs') || path.startsWith('/v1/memory') ? `Bearer ${who}:${who}` : `Bearer ${who}`,
    'content-type': 'application/json',
    ...HARN,
    ...more,
  });
  const ask = (who: string, method: string, path: string, body?: unknown, more?: Record<string, string>) =>
    fetch(`${doors.url}${path}`, {
      method,
      headers: headersOf(who, path, more),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  return {
    ...doors,
    hook,
    refused,
    goOn,
    call: async (who, method, path, body, more) => await (await ask(who, method, path, body, more)).text(),
    async stream(who, path, until, { headers, body, early } = {}) {
      const answer = await ask(who, body === undefined ? 'GET' : 'POST', path, body, {
        accept: 'text/event-stream',
        ...headers,
      });
      let reported = '';
      let begun = false;
      for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
        reported += piece;
        if (!begun && reported.includes('early Lyon')) {
          begun = true;
          early?.();
        }
        if (reported.includes(until)) break;
      }
      return reported;
    },
  };
}

/** Work given at the native door, by someone who says something of each visibility as well. */
async function harnTask(at: Scene, who: string, more = ''): Promise<{ task: string; session: string }> {
  const session = json(await at.call(who, 'POST', '/v1/sessions', { workspace_id: at.workspace })).id;
  const parts = [
    ...KNOWN.map((word) => part(word, 'asked')),
    { type: 'text', text: `go ${more}`, visibility: 'public' },
  ];
  await at.call(who, 'POST', `/v1/sessions/${session}/messages`, { role: 'user', parts });
  const made = json(await at.call(who, 'POST', `/v1/sessions/${session}/tasks`, { input: { role: 'user', parts } }));
  return { task: made.id, session };
}

async function overSocket(at: Scene, who: string): Promise<string> {
  const { task, session } = await harnTask(at, who, 'wait');
  const socket = await openSocket(`${at.url}/v1/sessions/${session}/events/stream`, {
    headers: { ...HARN, authorization: `Bearer ${who}` },
  });
  await at.at.seen(task, 'agent.message');
  at.goOn();
  await socket.next((frame) => JSON.stringify(frame).includes('task.completed'));
  return JSON.stringify(socket.frames);
}

async function editor(at: Scene, who: string): Promise<Editor> {
  const socket = new WebSocket(`${at.url.replace('http', 'ws')}/acp`, { headers: { authorization: `Bearer ${who}` } });
  onTestFinished(() => socket.terminate());
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return await speak({
    send: (text) => socket.send(text),
    onText: (hear) => void socket.on('message', (data) => hear(String(data))),
    close: async () => socket.close(),
  });
}

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const ONE = { 'a2a-version': '1.0' };
const ACTIVITY = { ...ONE, 'a2a-extensions': 'urn:tollbridge:a2a:activity:v1' };
let messages = 0;
const one = (text: string, configuration: object = {}) => {
  messages += 1;
  return { message: { messageId: `v-${messages}`, role: 'ROLE_USER', parts: [{ text }] }, configuration };
};
const three = (text: string, configuration: object = {}) => {
  messages += 1;
  const message = { kind: 'message', messageId: `v-${messages}`, role: 'user', parts: [{ kind: 'text', text }] };
  return { message, configuration };
};

/** A2A work that is under way, by its name. */
async function a2aTask(at: Scene, who: string): Promise<string> {
  const sent = await at.call(
    who,
    'POST',
    '/a2a/agent',
    rpc('SendMessage', one('wait', { returnImmediately: true })),
    ONE,
  );
  const { id } = json(sent).result.task;
  await at.at.seen(id, 'agent.message');
  return id;
}

async function pushed(at: Scene, who: string, method: string, params: object, headers: Record<string, string>) {
  const before = at.hook.got.length;
  const sent = await at.call(who, 'POST', '/a2a/agent', rpc(method, params), headers);
  await expect.poll(() => JSON.stringify(at.hook.got.slice(before))).toMatch(/TASK_STATE_COMPLETED|"completed"/);
  return sent + JSON.stringify(at.hook.got.slice(before));
}

async function remembered(at: Scene): Promise<void> {
  for (const visibility of KNOWN) {
    const content = `remembered ${WORDS[visibility]}`;
    const body = { scope: 'workspace', owner_id: at.workspace, content, provenance: {}, visibility };
    await at.at.send('resource.create', { object: 'memory', body });
  }
}

async function ahpAsked(at: Scene, who: string, type: string, payload: object): Promise<string> {
  await remembered(at);
  const event = {
    event_type: type,
    session_id: `s-${who}`,
    agent_id: 'a',
    timestamp: '2026-05-01T00:00:00Z',
    depth: 0,
  };
  return await at.call(who, 'POST', '/ahp', rpc('ahp/event', { ...event, payload: { session_id: 's', ...payload } }));
}

async function approval(at: Scene, who: string): Promise<string> {
  const before = at.hook.got.length;
  const hooks = openWebhooks({
    bridge: at.at.bridge,
    actor: { id: 'hooks', kind: 'system', scopes: ['*'] },
    recipients: [
      { name: 'duty', url: at.hook.url, key: 'k', link: (ask) => `${at.url}/decide/${at.links.token('duty', ask)}` },
    ],
    clock: at.at.clock,
    log: { info() {}, warn() {}, error() {} },
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
  });
  const { task } = await harnTask(at, who, 'mail');
  const [ask] = await at.at.asks(task);
  await expect.poll(() => at.hook.got.length).toBeGreaterThan(before);
  const page = await (await fetch(at.hook.got[before]!.body.data.decide_url)).text();
  expect(page).toContain('mail');
  await at.at.answer(ask!.id, { approved: true }, PEOPLE.all!);
  await at.at.until(task);
  await expect.poll(() => at.hook.got.length).toBeGreaterThan(before + 1);
  await hooks.close();
  return `${JSON.stringify(at.hook.got.slice(before))}${page}`;
}

interface Row {
  readonly door: string;
  /** The protocol can ask for internal content, and shows it with the scope. */
  readonly internal?: true;
  /** It has nothing of the agent's to show, so that not even public content is there. */
  readonly silent?: true;
  read(at: Scene, who: string): Promise<string>;
}

const ROWS: readonly Row[] = [
  {
    door: 'harn REST',
    internal: true,
    async read(at, who) {
      const { task, session } = await harnTask(at, who);
      await at.at.until(task);
      const paths = [
        `/v1/tasks/${task}`,
        `/v1/tasks/${task}/events?limit=200`,
        `/v1/sessions/${session}/events?limit=200`,
        `/v1/events?limit=200`,
        `/v1/sessions/${session}/messages`,
        `/v1/sessions/${session}/tasks`,
        `/v1/tasks`,
        `/v1/artifacts?task_id=${task}`,
        `/v1/outcomes?task_id=${task}`,
        `/v1/memories`,
      ];
      await remembered(at);
      const reported: string[] = [];
      for (const path of paths) reported.push(await at.call(who, 'GET', path));
      for (const { id } of json(reported[1]!).data) reported.push(await at.call(who, 'GET', `/v1/events/${id}`));
      reported.push(await at.call(who, 'POST', `/v1/tasks/${task}/replay`, {}));
      return reported.join('\n');
    },
  },
  {
    door: 'harn event streams',
    internal: true,
    async read(at, who) {
      const { task, session } = await harnTask(at, who, 'wait');
      let open = 3;
      const early = () => {
        open -= 1;
        if (open === 0) at.goOn();
      };
      const paths = [`/v1/tasks/${task}/stream`, `/v1/sessions/${session}/events/stream`, '/v1/events/stream?after=0'];
      const ways = [paths[0]!, paths[1]!, paths[0]!];
      return (await Promise.all(ways.map((path) => at.stream(who, path, 'task.completed', { early })))).join('');
    },
  },
  { door: 'harn WebSocket', internal: true, read: overSocket },
  {
    door: 'A2A 1.0 SendMessage and GetTask',
    async read(at, who) {
      const sent = await at.call(who, 'POST', '/a2a/agent', rpc('SendMessage', one('go')), ONE);
      const { id } = json(sent).result.task;
      return sent + (await at.call(who, 'POST', '/a2a/agent', rpc('GetTask', { id, historyLength: 50 }), ONE));
    },
  },
  {
    door: 'A2A 1.0 stream',
    read: (at, who) =>
      at.stream(who, '/a2a/agent', 'TASK_STATE_COMPLETED', {
        headers: ONE,
        body: rpc('SendStreamingMessage', one('go')),
      }),
  },
  {
    door: 'A2A 1.0 stream with activity',
    internal: true,
    read: (at, who) =>
      at.stream(who, '/a2a/agent', 'TASK_STATE_COMPLETED', {
        headers: ACTIVITY,
        body: rpc('SendStreamingMessage', one('go')),
      }),
  },
  {
    door: 'A2A 1.0 SubscribeToTask',
    async read(at, who) {
      const id = await a2aTask(at, who);
      const body = rpc('SubscribeToTask', { id });
      return await at.stream(who, '/a2a/agent', 'TASK_STATE_COMPLETED', { headers: ONE, body, early: at.goOn });
    },
  },
  {
    door: 'A2A 1.0 push',
    read: (at, who) =>
      pushed(at, who, 'SendMessage', one('go', { taskPushNotificationConfig: { url: at.hook.url } }), ONE),
  },
  {
    door: 'A2A 0.3 message/send and tasks/get',
    async read(at, who) {
      const sent = await at.call(who, 'POST', '/a2a/agent', rpc('message/send', three('go', { blocking: true })));
      const { id } = json(sent).result;
      return sent + (await at.call(who, 'POST', '/a2a/agent', rpc('tasks/get', { id, historyLength: 50 })));
    },
  },
  {
    door: 'A2A 0.3 stream',
    read: (at, who) => at.stream(who, '/a2a/agent', '"final":true', { body: rpc('message/stream', three('go')) }),
  },
  {
    door: 'A2A 0.3 tasks/resubscribe',
    async read(at, who) {
      const body = rpc('tasks/resubscribe', { id: await a2aTask(at, who) });
      return await at.stream(who, '/a2a/agent', '"final":true', { body, early: at.goOn });
    },
  },
  {
    door: 'A2A 0.3 push',
    read: (at, who) =>
      pushed(at, who, 'message/send', three('go', { pushNotificationConfig: { url: at.hook.url } }), {}),
  },
  {
    door: 'ACP live',
    async read(at, who) {
      const live = await editor(at, who);
      await live.prompt(await live.session('/w'), 'go');
      return live.lines.join('');
    },
  },
  {
    door: 'ACP session/load',
    async read(at, who) {
      const live = await editor(at, who);
      const sessionId = await live.session('/w');
      await live.prompt(sessionId, 'go');
      const later = await editor(at, who);
      await later.call('session/load', { sessionId, cwd: '/w', mcpServers: [] });
      await expect.poll(() => later.lines.join('')).toContain('the end');
      return later.lines.join('');
    },
  },
  {
    door: 'runs events and stream',
    async read(at, who) {
      const body = { input: { user_query: 'go' }, metadata: {} };
      const made = await at.call(who, 'POST', '/v1/runs', body, { 'idempotency-key': `v-${++messages}` });
      const { id, run_id = id } = json(made);
      const streamed = await at.stream(who, `/v1/runs/${run_id}/events/stream`, 'RUN_COMPLETED_THAT_NEVER_COMES');
      const paths = [`/v1/runs/${run_id}`, `/v1/runs/${run_id}/events?cursor=0&limit=200`];
      return made + streamed + (await Promise.all(paths.map((path) => at.call(who, 'GET', path)))).join('');
    },
  },
  {
    door: 'runs memory',
    async read(at, who) {
      await remembered(at);
      const paths = ['/v1/memory/items?include_harness=true', '/v1/memory/export?include_harness=true'];
      const [listed, exported] = await Promise.all(paths.map((path) => at.call(who, 'GET', path)));
      const items = await Promise.all(
        json(listed!).items.map(({ id }: { id: string }) => at.call(who, 'GET', `/v1/memory/items/${id}`)),
      );
      return [listed, exported, ...items].join('');
    },
  },
  {
    door: 'MCP agents as tools',
    async read(at, who) {
      const client = await openLegacyClient(`${at.url}/mcp`, {}, { headers: { authorization: `Bearer ${who}` } });
      const call = (name: string, input: object) => client.request('tools/call', { name, arguments: input });
      const done = JSON.stringify((await call('agent__agent', { message: 'go' })).frames);
      const [, task_id] = /"task_id":"([^"]+)"/.exec(done)!;
      return done + JSON.stringify((await call('task__status', { task_id: task_id! })).frames);
    },
  },
  {
    door: 'MCP tasks',
    async read(at, who) {
      const client = await openLegacyClient(`${at.url}/mcp`, {}, { headers: { authorization: `Bearer ${who}` } });
      const begun = await client.request('tools/call', {
        name: 'agent__agent',
        arguments: { message: 'go' },
        task: {},
      });
      const { taskId } = (begun.frames.at(-1) as { result: { task: { taskId: string } } }).result.task;
      const result = await client.request('tasks/result', { taskId });
      return JSON.stringify([result.frames, (await client.request('tasks/get', { taskId })).frames]);
    },
  },
  {
    door: 'AHP memory recall',
    internal: true,
    read: (at, who) =>
      ahpAsked(at, who, 'memory_recall', {
        query: 'remembered',
        memory_type: 'any',
        max_results: 9,
        working_directory: '/',
      }),
  },
  {
    door: 'AHP context',
    internal: true,
    read: (at, who) =>
      ahpAsked(at, who, 'context_perception', {
        intent: 'locate',
        target: { location: { path: '.', location_type: 'd' } },
        context: { workspace: '/', query: 'remembered' },
      }),
  },
  { door: 'approval webhook and page', silent: true, read: approval },
];

/** Whether a word is there, as itself or as the bytes of a file. */
function shows(reported: string, visibility: Visibility): boolean {
  return reported.includes(WORDS[visibility]) || reported.includes(fileOf(visibility).toString('base64'));
}

describe.each(ROWS)('$door', ({ read, internal, silent }) => {
  test.each(['plain', 'inner', 'all'])('shows %s what it may see', async (who) => {
    const at = await scene();
    const reported = await read(at, who);
    const shown = Object.fromEntries(KNOWN.map((word) => [word, shows(reported, word)]));
    // A credential with every scope reads resources for receipts one by one: of those the next test speaks.
    if (who === 'all' && reported.includes('"object":"artifact"')) delete shown.receipt_only;
    expect(shown, reported.slice(0, 4000)).toEqual({
      public: !silent,
      internal: internal === true && who !== 'plain',
      ...('receipt_only' in shown && { receipt_only: false }),
    });
    expect(shows(reported, 'pubic')).toBe(false);
    for (const kind of at.refused) expect(kind).toBe('invalid_request');
  });
});

test('a word that is not known is refused from agents and from callers, and nothing of it is in the log', async () => {
  const at = await scene();
  const { task, session } = await harnTask(at, 'all');
  await at.at.until(task);
  expect(at.refused).toEqual(Array(6).fill('invalid_request'));
  const message = { role: 'user', parts: [part('pubic', 'typed')] };
  const memory = { scope: 'workspace', owner_id: at.workspace, content: 'Kyiv', provenance: {}, visibility: 'pubic' };
  for (const [path, body] of [
    [`/v1/sessions/${session}/tasks`, { input: message }],
    ['/v1/tasks', { session_id: session, input: message }],
    [`/v1/sessions/${session}/messages`, message],
    ['/v1/memories', memory],
  ] as const) {
    expect(json(await at.call('all', 'POST', path, body)).error, path).toMatchObject({ code: 'invalid_request' });
  }
  const socket = await openSocket(`${at.url}/v1/sessions/${session}/events/stream`, {
    headers: { ...HARN, authorization: 'Bearer all' },
  });
  const command = { type: 'submit_task', session_id: session, input: message };
  expect(await socket.command(command)).toMatchObject({ type: 'error' });
  expect(JSON.stringify(await at.at.all())).not.toContain('Kyiv');
});

test('a file for receipts only is read by itself, with the scope of receipts', async () => {
  const at = await scene();
  const { task } = await harnTask(at, 'all');
  await at.at.until(task);
  const { data } = json(await at.call('all', 'GET', `/v1/artifacts?task_id=${task}`));
  const sealed = data.find((file: { metadata: { name?: string } }) => file.metadata.name === 'early-Riga.log');
  expect(sealed.visibility).toBe('receipt_only');
  for (const who of ['plain', 'inner'])
    expect(await at.call(who, 'GET', `/v1/artifacts/${sealed.id}`)).not.toContain('Riga');
});

/** What a caller gives at a door that has a word for content that is not for every reader. */
interface Entry {
  readonly door: string;
  /** Gives work with this city in a part of the given visibility; the answer as it came. */
  give(at: Scene, city: string, word: unknown): Promise<string>;
  readonly words: Readonly<Record<'public' | 'internal', unknown>> & { readonly unknown: readonly unknown[] };
}

const VISIBILITY = 'urn:tollbridge:a2a:visibility:v1';
const a2aParts = (word: unknown, part: object) => [
  { ...part, ...(word !== undefined && { metadata: { [VISIBILITY]: word } }) },
];
const AUDIENCE = {
  public: ['user', 'assistant'],
  internal: ['assistant'],
  unknown: [['robot'], 'assistant', ['assistant', 7], { user: true }],
};
const A2A_WORDS = { public: 'public', internal: 'internal', unknown: ['pubic', '', 7, ['internal'], null] };

async function acpGives(at: Scene, audience: unknown, block: object): Promise<string> {
  const live = await editor(at, 'all');
  const prompt = [{ ...block, annotations: { audience } }];
  const answer = await live.call('session/prompt', { sessionId: await live.session('/w'), prompt }).catch(String);
  return JSON.stringify(answer);
}

const ENTRIES: readonly Entry[] = [
  {
    door: 'ACP text, by its audience',
    words: AUDIENCE,
    give: (at, city, audience) => acpGives(at, audience, { type: 'text', text: city }),
  },
  {
    door: 'ACP resource, by its audience',
    words: AUDIENCE,
    give: (at, city, audience) =>
      acpGives(at, audience, { type: 'resource', resource: { uri: 'file:///w/x', text: city } }),
  },
  {
    door: 'A2A 1.0 part, by the extension',
    words: A2A_WORDS,
    give: (at, city, word) => {
      const { message } = one('');
      const body = rpc('SendMessage', { message: { ...message, parts: a2aParts(word, { text: city }) } });
      return at.call('all', 'POST', '/a2a/agent', body, ONE);
    },
  },
  {
    door: 'A2A 1.0 message, by the extension',
    words: A2A_WORDS,
    give: (at, city, word) => {
      const { message } = one(city);
      const body = rpc('SendMessage', { message: { ...message, metadata: { [VISIBILITY]: word } } });
      return at.call('all', 'POST', '/a2a/agent', body, ONE);
    },
  },
  {
    door: 'A2A 0.3 part, by the extension',
    words: A2A_WORDS,
    give: (at, city, word) => {
      const { message } = three('');
      const parts = a2aParts(word, { kind: 'text', text: city });
      const body = rpc('message/send', { message: { ...message, parts }, configuration: { blocking: true } });
      return at.call('all', 'POST', '/a2a/agent', body);
    },
  },
  {
    door: 'runs input, by its sensitivity tags',
    words: {
      public: undefined,
      internal: 'proprietary',
      unknown: ['secretish', '', 7],
    },
    give: (at, city, classification) => {
      const tags = classification === undefined ? [] : [{ path: '$.input.plan', classification }];
      const body = { input: { user_query: 'go', plan: city }, metadata: {}, sensitivity_tags: tags };
      return at.call('all', 'POST', '/v1/runs', body, { 'idempotency-key': `v-${++messages}` });
    },
  },
];

describe.each(ENTRIES)('given at $door', ({ give, words }) => {
  /** What someone without the scope for internal content reads of every task at the native door. */
  async function read(at: Scene): Promise<string> {
    const { data } = json(await at.call('plain', 'GET', '/v1/tasks?limit=200'));
    expect(data.length).toBeGreaterThan(0);
    for (const { id } of data) await at.at.until(id);
    const paths = ['/v1/tasks?limit=200', '/v1/events?limit=200'];
    return (await Promise.all(paths.map((path) => at.call('plain', 'GET', path)))).join('');
  }

  test('what is not for every reader is not shown to every reader', async () => {
    const at = await scene();
    await give(at, 'Turin', words.public);
    expect(await read(at)).toContain('Turin');
    await give(at, 'Malmo', words.internal);
    expect(await read(at)).not.toContain('Malmo');
  });

  test('a word that is not known is refused, and nothing is begun', async () => {
    const at = await scene();
    for (const word of words.unknown) {
      expect(await give(at, 'Kyiv', word)).toMatch(/-32602|INVALID|audience lists user/);
    }
    expect(json(await at.call('all', 'GET', '/v1/tasks')).data).toEqual([]);
    expect(JSON.stringify(await at.at.all())).not.toContain('Kyiv');
  });
});
