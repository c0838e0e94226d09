/** A gateway with a secret planted everywhere one can be said: by agents, tools, rules, people and services. */

import { join } from 'node:path';
import pino from 'pino';
import { expect } from 'vitest';
import type { Actor } from '../../../src/model/actions.ts';
import type { Command, CommandBody, CommandKind } from '../../../src/model/commands.ts';
import { vendorEvent } from '../../../src/model/events.ts';
import type { PolicyEngine } from '../../../src/ports/index.ts';
import { eventually } from '../eventually.ts';
import { openTestGateway, REAL_TIME, type TestGateway } from '../gateway/test-gateway.ts';
import { bag, KNOWN, looks, MARK, sentence } from './canaries.ts';
import { type Script, scripted, stopped, text, toolbox } from './script.ts';

/** Everywhere an agent can say something. */
const tells: Script = async ({ sink, work }) => {
  const input = JSON.stringify(work.task.input);
  if (work.task.metadata.whole) expect(input).toContain(MARK); // the agent gets what was meant for it
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
  await sink.emit({ event: vendorEvent('com.example.said'), payload: bag(), trace_id: KNOWN, span_id: looks.bearer() });
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

export async function plant(gateway: TestGateway): Promise<void> {
  const { store } = gateway.runtime;
  let keys = 0;
  const submit = <K extends CommandKind>(kind: K, body: CommandBody<K>, more: Partial<Command> = {}) =>
    gateway.send(
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
    await eventually(async () => {
      for (const ask of await gateway.openAsks()) {
        const value = ask.kind === 'input' ? { value: sentence() } : { approved: true };
        await submit('ask.answer', { ask_id: ask.id, ...value, reason: sentence() }).catch(() => {});
      }
      return ['COMPLETED', 'FAILED', 'CANCELED'].includes((await gateway.task(taskId)).status);
    });
    return await gateway.task(taskId);
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
  const events = await gateway.events(done.resource.id);
  const fact = events.find(({ event }) => event === vendorEvent('com.example.said'))!;
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
  await gateway.runtime.idle();
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

export async function openPlanted(
  dir: string,
): Promise<{ gateway: TestGateway; logFile: string; tools: ReturnType<typeof box> }> {
  const logFile = join(dir, 'own.log');
  const logger = pino({ level: 'trace' }, pino.destination({ dest: logFile, sync: true }));
  const tools = box();
  const gateway = await openTestGateway({
    ...REAL_TIME,
    dir: join(dir, 'data'),
    rules: RULES,
    logger,
    engines: [gossip],
    tools: [tools],
    settings: { inlineLimit: 2000, graceMs: 30 },
    agents: [
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
  gateway.runtime.redactor.learn(KNOWN);
  return { gateway, logFile, tools };
}
