/**
 * Secrets, planted everywhere one can be said, are found nowhere: not in the file, not in our own log, not in any answer.
 * What a tool needs it still gets, and an approval is still bound to exactly what was asked.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import pino from 'pino';
import { describe, expect, test } from 'vitest';
import type { Actor } from '../src/model/actions.ts';
import type { Command, CommandBody, CommandKind } from '../src/model/commands.ts';
import type { JsonObject } from '../src/model/schema.ts';
import type { PolicyEngine, Row } from '../src/ports.ts';
import { all, ana, freshDir, type Life, openLife, until } from './life/house.ts';
import { openMortal } from './life/mortal.ts';
import { type Script, scripted, stopped, text, toolbox } from './life/script.ts';

/** Every canary holds this word; no honest text does. */
const MARK = 'kanari';
let hatched = 0;
const hatch = () => `${MARK}${String(++hatched).padStart(4, '0')}`;

/** Known by value: from a vault or an environment. It has no look of its own. */
const KNOWN = `the ${MARK} in the mine`;

/** Recognised by their looks or by the name they go by. */
const looks = {
  bearer: () => `Bearer ${hatch()}a9Z8y7X6w5V4u3`,
  provider: () => `sk-${hatch()}0123456789ABCDEF`,
  github: () => `ghp_${hatch()}abcdefghij0123456789`,
  signed: () => `eyJhbGciOi${hatch()}.eyJzdWIi${hatch()}.c2ln${hatch()}`,
  address: () => `https://hook:${hatch()}@hooks.example.com/in`,
  parameter: () => `https://hooks.example.com/in?token=${hatch()}&x=1`,
  variable: () => `DB_PASSWORD=${hatch()} make`,
  flag: () => `login --password ${hatch()}`,
  header: () => `x-api-key: ${hatch()}99`,
  known: () => KNOWN,
  coded: () => Buffer.from(`user ${KNOWN} end`).toString('base64'),
  percent: () => encodeURIComponent(KNOWN),
};
const sentence = () =>
  `see ${Object.values(looks)
    .map((look) => look())
    .join(' and ')} there`;
const headers = () => ({
  Authorization: `Basic ${Buffer.from(`u:${hatch()}`).toString('base64')}`,
  'X-Api-Key': hatch(),
  Cookie: `sid=${hatch()}`,
});
const env = () => ({ DB_PASSWORD: hatch(), AWS_SECRET_ACCESS_KEY: hatch(), GITHUB_TOKEN: hatch(), HOME: '/root' });
const bag = (): JsonObject => ({
  note: sentence(),
  headers: headers(),
  env: env(),
  list: [{ name: 'password', value: hatch() }, ['--token', hatch()], { nested: { client_secret: hatch() } }],
  inner: JSON.stringify({ password: hatch(), access_token: hatch() }),
  hook: looks.address(),
  [`key ${looks.provider()}`]: 1,
});

/** Everywhere an agent can say something. */
const tells: Script = async ({ sink, work }) => {
  const given = JSON.stringify(work.task.input);
  if (work.task.metadata.whole) expect(given).toContain(MARK); // the agent gets what was meant for it
  await sink.emit(text(sentence(), { metadata: bag() }));
  await sink.emit({
    event: 'vendor.tollbridge.message_delta',
    payload: { message_id: 'm', role: 'assistant', text: sentence() },
  });
  await sink.emit({
    event: 'span.completed',
    payload: { ...bag(), span: { id: 's', kind: 'llm', call_id: '1' }, response: bag() },
    ext: { acp: bag() },
  });
  await sink.emit({ event: 'com.example.said', payload: bag(), trace_id: KNOWN, span_id: looks.bearer() });
  await sink.emit({ event: 'vendor.tollbridge.plan', payload: { entries: [bag()] } });
  await sink.emit({ event: 'agent.reasoning_summary', payload: { text: sentence().repeat(30) } }); // too long to stand inline
  await sink.emit(text(sentence().repeat(30)));
  await sink.artifact({
    kind: 'file',
    name: sentence(),
    mime_type: 'text/plain',
    bytes: Buffer.from('clean'),
    uri: looks.address(),
    metadata: bag(),
  });
  await sink.emit({
    event: 'artifact.created',
    payload: { artifact: { kind: 'log', mime_type: 'text/plain', uri: looks.parameter(), metadata: bag() } },
  });
  const act = (tool: string) =>
    sink.act({ kind: 'tool', tool, tool_call_id: `${tool} ${KNOWN}`, arguments: bag(), target: looks.address() });
  for (const tool of ['returns', 'fails', 'throws', 'mend', 'no', 'ask', 'long']) await act(tool);
  await sink.ask({
    kind: 'approval',
    action: { kind: 'tool', tool: 'ask', tool_call_id: 'asked', arguments: bag() },
    question: sentence(),
    ext: { acp: bag() },
  });
  await sink.ask({
    kind: 'input',
    key: `k ${KNOWN}`,
    question: sentence(),
    schema: { type: 'string', description: sentence() },
  });
  await sink.emit({
    event: 'tool.requested',
    payload: { tool_call_id: 'o', name: `run ${KNOWN}`, kind: 'tool', input: bag() },
  });
  await sink.emit({
    event: 'tool.failed',
    payload: { tool_call_id: 'o', name: 'run', status: 'error', error: sentence() },
  });
  return { state: 'COMPLETED', summary: sentence(), metrics: bag(), not_reported: [sentence()] };
};

const box = () =>
  toolbox('box', {
    returns: () => ({
      status: 'ok',
      output: bag(),
      effects: [{ type: 'network', destination: looks.address(), purpose: sentence() }],
      artifacts: [
        { kind: 'log', mime_type: 'text/plain', bytes: Buffer.from('clean'), name: sentence(), metadata: bag() },
      ],
      usage: { provider: `p ${KNOWN}`, model: 'm', input_tokens: 1 },
      ext: { mcp: bag() },
    }),
    fails: () => ({ status: 'error', output: bag(), error: sentence() }),
    throws: () => {
      throw new Error(sentence(), { cause: new Error(sentence()) });
    },
    mend: undefined,
    no: undefined,
    ask: undefined,
    long: () => ({ status: 'ok', output: sentence().repeat(40) }),
  });

const RULES = `
- { id: ordinary, then: allow }
- { id: people, when: { kind: tool, tool: ask* }, then: ask, say: a person decides }
- { id: never, when: { kind: tool, tool: no* }, then: block, say: not here }
- { id: mended, when: { kind: tool, tool: mend* }, then: modify, set: { safe: true }, say: made safe }
`;

/** An outside engine that is careless with what it says, and sometimes falls over. */
const gossip: PolicyEngine = {
  name: 'gossip',
  async decide({ attributes }) {
    if (attributes?.stumble) throw new Error(sentence());
    return { verdict: 'allow', reason: sentence(), engine: 'gossip' };
  },
};

const service: Actor = { id: `service ${KNOWN}`, kind: 'service', scopes: ['*'] };

async function plant(life: Life): Promise<void> {
  const { store } = life.house;
  let keys = 0;
  const submit = <K extends CommandKind>(kind: K, body: CommandBody<K>, more: Partial<Command> = {}) =>
    life.do(
      kind,
      { ...body, metadata: bag() } as never,
      {
        actor: service,
        idempotency: { key: `${sentence()} ${++keys}` },
        trace_id: sentence(),
        ext: { harn: bag() },
        ...more,
      } as never,
    );

  const { resource: workspace } = await submit('resource.create', {
    object: 'workspace',
    body: { name: sentence(), root: looks.address() },
  });
  const workspace_id = workspace.id;
  const owner = { scope: 'workspace', owner_id: workspace_id };
  await submit('resource.create', { object: 'memory', body: { ...owner, content: bag(), provenance: bag() } });
  await submit('resource.create', {
    object: 'connector',
    body: { provider: 'p', workspace_id, event_kinds: [], auth: bag(), webhook: { url: looks.address() } },
  });
  await submit('resource.create', {
    object: 'vault',
    body: { provider: 'p', workspace_id, capabilities: [sentence()] },
  });
  const described = {
    name: 'p',
    version: '1',
    entry_workflow: 'tells',
    autonomy_tier: 'act_auto',
    receipt_policy: 'required',
  };
  const { resource: persona } = await submit('resource.create', {
    object: 'persona',
    body: { ...described, description: sentence() },
  });
  await submit('resource.update', { object: 'persona', id: persona.id, body: { owner: sentence() } });

  const message = () => ({
    role: 'user' as const,
    parts: [
      { type: 'text', text: sentence(), visibility: 'public' },
      { type: 'json', value: bag(), visibility: 'internal' },
      { type: 'text', text: sentence(), visibility: 'receipt_only' },
    ],
    metadata: bag(),
  });
  const { resource: session } = await submit('session.create', {
    workspace_id,
    persona_id: persona.id,
    initial_messages: [message()],
  });
  const session_id = session.id;
  await submit('session.update', { session_id, summary: sentence() });
  const { resource: said } = await submit('message.append', { session_id, message: message() });
  await submit('session.compact', { session_id, summary: sentence(), through_message_id: said.id });
  await submit('branch.create', { session_id, kind: 'session', base_ref: looks.address() });
  const register = { kind: 'file' as const, mime_type: 'text/plain', visibility: 'public' as const };
  await submit(
    'artifact.register',
    { ...register, session_id, uri: looks.parameter() },
    { bytes: Buffer.from('clean') },
  );
  await submit('binding.set', {
    protocol: 'acp',
    scope: sentence(),
    wire_id: looks.bearer(),
    to: { object: 'session', id: session_id },
  });
  await submit('passthrough', { protocol: 'acp', method: `_x/${KNOWN}`, params: bag(), session_id, workspace_id });

  const answer = async (taskId: string) => {
    await until(async () => {
      for (const ask of await life.openAsks()) {
        const value = ask.kind === 'input' ? { value: sentence() } : { approved: true };
        await submit('ask.answer', { ask_id: ask.id, ...value, reason: sentence() }).catch(() => {});
      }
      return ['COMPLETED', 'FAILED', 'CANCELED'].includes((await life.task(taskId)).status);
    });
    return await life.task(taskId);
  };
  // Work of every kind and every end.
  const done = await submit('task.submit', { session_id, input: message() });
  expect(await answer(done.resource.id)).toMatchObject({ status: 'COMPLETED' });
  const open = await submit('task.submit', { session_id, input: bag(), agent: 'tells' });
  expect(await answer(open.resource.id)).toMatchObject({ status: 'COMPLETED' });
  for (const agent of ['throws', 'fails', 'balks']) {
    const failed = await submit('task.submit', { session_id, input: message(), agent });
    expect(await answer(failed.resource.id)).toMatchObject({ status: 'FAILED' });
  }
  const canceled = await submit('task.submit', { session_id, input: message(), agent: 'waits' });
  await submit('task.message', { task_id: canceled.resource.id, kind: 'interrupt', message: message() });
  await submit('task.cancel', { task_id: canceled.resource.id, reason: sentence() });
  const outside = await submit('task.submit', { session_id, input: message(), agent: 'none' });
  const task_id = outside.resource.id;
  const attributes = { stumble: true };
  await submit('action.propose', {
    task_id,
    action: { kind: 'tool', tool: 'x', tool_call_id: 'x', arguments: bag(), attributes },
  });
  await submit('tool.call', { task_id, action: { kind: 'tool', tool: 'throws', arguments: bag() } });
  await submit('task.report', {
    task_id,
    facts: [text(sentence())],
    end: { state: 'FAILED', failure: { code: 'x', message: sentence(), details: bag() } },
  });

  // Lived through again, with other secrets in place of the first.
  await submit('task.replay', { task_id: done.resource.id, reason: sentence() });
  const events = await life.events(done.resource.id);
  const fact = events.find(({ event }) => event === 'com.example.said')!;
  await submit('task.replay', {
    task_id: done.resource.id,
    mode: 'with_overrides',
    reason: sentence(),
    override: {
      'llm:1': { kind: 'llm_provider_response', value: bag(), reason: sentence() },
      [`event:${fact.id}`]: { kind: 'event_payload', value: bag() },
      'mcp:box:none': { kind: 'mcp_tool_return', value: bag() },
    },
  }).catch(() => {}); // refused: there is no such call
  await submit('task.replay', {
    task_id: done.resource.id,
    mode: 'with_overrides',
    override: { 'llm:1': { kind: 'llm_provider_response', value: bag(), reason: sentence() } },
  });
  await life.house.idle();
  await submit('session.fork', { session_id });
  await submit('session.truncate', { session_id, keep_first: 1, reason: sentence() });
  // What is refused is not kept either.
  for (const body of [
    { session_id: sentence(), input: bag() },
    { session_id, input: bag(), agent: sentence() },
  ]) {
    await submit('task.submit', body).catch(() => {});
  }
  for (const { receipt } of await store.receipts({ limit: 200 })) {
    await submit('receipt.verify', { receipt_id: receipt.receipt_id });
  }
}

async function openPlanted(dir: string): Promise<{ life: Life; logFile: string; tools: ReturnType<typeof box> }> {
  const logFile = join(dir, 'own.log');
  const logger = pino({ level: 'trace' }, pino.destination({ dest: logFile, sync: true }));
  const tools = box();
  const life = await openLife({
    dir: join(dir, 'data'),
    rules: RULES,
    logger,
    engines: [gossip],
    tools: [tools],
    settings: { inlineLimit: 2000, graceMs: 30 },
    backends: [
      scripted('tells', tells),
      scripted('throws', async () => {
        throw new Error(sentence());
      }),
      scripted('fails', async () => ({ state: 'FAILED', failure: { code: 'x', message: sentence(), details: bag() } })),
      { ...scripted('balks', async () => undefined), start: () => Promise.reject(new TypeError(sentence())) },
      {
        ...scripted('waits', ({ signal }) => stopped(signal)),
        async start(_work, _sink, signal) {
          return {
            done: stopped(signal).then(() => ({ state: 'CANCELED' as const })),
            steer() {
              throw new Error(sentence());
            },
            stop: () => Promise.reject(new Error(sentence())),
          };
        },
      },
    ],
  });
  life.house.redactor.learn(KNOWN);
  return { life, logFile, tools };
}

/** The mark as it would look in plain text, inside percent escapes, in base64 at any offset, and in hex. */
const TRACES = [
  MARK,
  MARK.toUpperCase(),
  Buffer.from(MARK).toString('hex'),
  ...[0, 1, 2].flatMap((offset) => {
    const coded = Buffer.concat([Buffer.alloc(offset), Buffer.from(MARK)]).toString('base64');
    return [coded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + MARK.length) * 8) / 6))];
  }),
];
function expectClean(where: string, content: string): void {
  for (const trace of TRACES) {
    const at = content.indexOf(trace);
    if (at >= 0) throw new Error(`${where} holds ${JSON.stringify(content.slice(Math.max(0, at - 200), at + 60))}`);
  }
}

async function filesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

describe('planted secrets', () => {
  test('are in no file, no log line and no answer', { timeout: 120_000 }, async () => {
    const dir = await freshDir();
    const { life, logFile, tools } = await openPlanted(dir);
    await plant(life);

    // They reached those they were meant for.
    const returns = tools.ran.find(({ tool }) => tool === 'returns')!;
    expect(JSON.stringify(returns.arguments)).toContain(MARK);
    expect(hatched).toBeGreaterThan(2000);

    // Every answer anyone can get.
    const { bridge } = life.house;
    const objects =
      'workspace persona session task message artifact memory vault connector skill quota branch outcome ask receipt';
    let answers = 0;
    for (const object of objects.split(' ')) {
      const { data } = await bridge.list<Row>(ana, { object, limit: 1000 });
      for (const row of data) {
        expectClean(`${object} ${row.id} in a list`, JSON.stringify(row));
        expectClean(`${object} ${row.id}`, JSON.stringify(await bridge.view(ana, object, row.id)));
        answers += 1;
        if (object !== 'artifact') continue;
        const bytes = await bridge.bytes(ana, row.id).catch(() => Buffer.alloc(0));
        expectClean(`the bytes of ${row.id}`, Buffer.from(bytes).toString('latin1'));
      }
    }
    expect(answers).toBeGreaterThan(60);
    const auditor: Actor = { id: 'auditor', kind: 'system', scopes: ['*'] };
    const events = await all(bridge.events(auditor, { stream: { of: 'all' } }));
    expect(events.length).toBeGreaterThan(300);
    for (const event of events) expectClean(`event ${event.event} ${event.id}`, JSON.stringify(event));

    // Every value in the file, then every byte of every file.
    const db = new Database(join(life.dir, 'log.db'));
    const tables = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all() as { name: string }[];
    for (const { name } of tables) {
      for (const row of db.prepare(`SELECT * FROM "${name}"`).all() as object[]) {
        for (const [column, value] of Object.entries(row)) {
          const content =
            value instanceof Uint8Array || value instanceof ArrayBuffer
              ? Buffer.from(value as Uint8Array).toString('latin1')
              : String(value);
          expectClean(`${name}.${column}`, content);
        }
      }
    }
    db.close();
    const open = await filesBelow(life.dir);
    expect(open.some((file) => file.endsWith('-wal'))).toBe(true);
    for (const file of open) expectClean(file, await readFile(file, 'latin1'));
    await life.close();
    for (const file of await filesBelow(dir)) expectClean(file, await readFile(file, 'latin1'));
    const lines = (await readFile(logFile, 'utf8')).trim().split('\n');
    expect(lines.length).toBeGreaterThan(3); // it did log: tools that threw, an engine that fell over
    expect(lines.some((line) => line.includes('[redacted: '))).toBe(true);
  });

  test('leave a mark where they were, in the event and in the receipt', async () => {
    const { life } = await openPlanted(await freshDir());
    const { id } = await life.submit(await life.session(), {
      agent: 'fails',
      input: { password: hatch(), note: looks.bearer() },
    });
    await life.ended(id);
    const events = await life.events(id);
    const submitted = events.find(({ event }) => event === 'task.submitted')!;
    expect(submitted.metadata.redactions).toEqual(
      expect.arrayContaining([{ field: '/payload/task/input/password', reason: 'sensitive key' }]),
    );
    const input = (submitted.payload.task as { input: JsonObject }).input;
    expect(input).toEqual({ password: '[redacted: password]', note: 'Bearer [redacted: bearer token]' });
    const receipt = await life.receipt(id);
    expect(receipt.redactions).toEqual(
      expect.arrayContaining([
        { field: `/events/${submitted.id}/payload/task/input/password`, reason: 'sensitive key' },
      ]),
    );
    expect(receipt.lifecycle.failure).toMatchObject({ code: 'x', message: expect.stringContaining('[redacted: ') });
    expect(receipt.replay_input.determinism).toBe('best_effort');
    const verdict = await life.do('receipt.verify', { receipt_id: receipt.receipt_id });
    expect(verdict.details).toMatchObject({ valid: true });
  });
});

describe('an approval of something with a secret in it', () => {
  const rules = '[{ id: ordinary, then: allow }, { id: people, when: { tool: ask* }, then: ask }]';

  test('shows people what they may see, runs with the real thing, and counts for nothing else', async () => {
    const passwords = ['open sesame 1', 'open sesame 2'];
    let at = 0;
    const script: Script = async ({ sink }) => {
      const args = { user: 'ana', password: passwords[at]! };
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c', arguments: args });
    };
    const tools = toolbox('box', { ask: undefined });
    const agents = () => [scripted('one', script, { resume: true })];
    const first = await openMortal({ rules, backends: agents(), tools: [tools] });
    const { id } = await first.submit(await first.session());
    const ask = await first.ask(id);
    expect(ask.action.arguments).toEqual({ user: 'ana', password: '[redacted: password]' });
    expect(ask.digest).toMatch(/^hmac-sha256:[0-9a-f]{64}$/);
    // Approved, and then the process dies before it acts.
    const struck = first.doom({ commit: 1, when: 'after' });
    void first.answer(ask.id, { approved: true });
    await struck;
    await first.die();

    // Another password looks the same in the log and is not what was approved.
    at = 1;
    const second = await openMortal({ dir: first.dir, rules, backends: agents(), tools: [tools] });
    await until(async () => (await second.openAsks()).length === 1);
    const [again] = await second.openAsks();
    expect(again!.id).not.toBe(ask.id);
    expect(again!.digest).not.toBe(ask.digest);
    expect(again!.action.arguments).toEqual({ user: 'ana', password: '[redacted: password]' });
    expect(tools.ran).toEqual([]);
    await second.die();

    // The same one is.
    at = 0;
    const third = await openLife({ dir: first.dir, rules, backends: agents(), tools: [tools] });
    await third.ended(id);
    expect(tools.ran.map(({ arguments: args }) => args)).toEqual([{ user: 'ana', password: 'open sesame 1' }]);
  });
});
