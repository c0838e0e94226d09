/** The Harn profile through the relay: its questions are in the inbox and on receipts, its host calls are acts. */
import { expect, test } from 'vitest';
import type { PolicyEngine, Row } from '../../../../src/ports/index.ts';
import { CWD, openStage, picks, type Stage, update } from '../../../support/acp/relay.ts';
import { latch } from '../../../support/gateway/agents.ts';

const END = { stopReason: 'end_turn' };
const harn = { clientCapabilities: { _meta: { harn: {} } } };
const request = (requestId: string, kind: string, payload: object): [string, object] => [
  'session/update',
  update('hitl_request', { _meta: { harn: { requestId, kind, payload } } }),
];

async function opened(capabilities: object, rules = '[]', engines: readonly PolicyEngine[] = []): Promise<Stage> {
  const stage = await openStage({ rules, engines });
  stage.agent.on('initialize', () => ({ protocolVersion: 1, agentCapabilities: {} }));
  stage.agent.on('session/new', () => ({ sessionId: 's1' }));
  await stage.editor.ask('initialize', { protocolVersion: 1, ...capabilities });
  await stage.editor.ask('session/new', { cwd: CWD, mcpServers: [] });
  return stage;
}

/** A turn in which the agent asks in the way of the profile, and ends when it has the answer. */
function asking(
  stage: Stage,
  ...asked: readonly [method: string, params: object][]
): { readonly answers: unknown[]; readonly over: ReturnType<Stage['prompt']> } {
  const answers: unknown[] = [];
  stage.agent.on('session/prompt', async (_, { id }) => {
    stage.agent.on('harn.hitl.respond', (params) => {
      answers.push(params);
      stage.agent.say({ id, result: END });
      return { ok: true };
    });
    for (const [method, params] of asked) stage.agent.notify(method, params);
  });
  return { answers, over: stage.prompt() };
}

async function question({ home }: Stage): Promise<string> {
  const open = () => home.runtime.store.list<Row>({ object: 'ask', where: { state: 'open' } });
  await expect.poll(open).toHaveLength(1);
  return (await open())[0]?.id ?? '';
}

const DEPLOY = { action: 'deploy', args: { to: 'prod' } };
const APPROVAL = request('h1', 'approval', { approvalRequest: DEPLOY });
/** As agents of the first revision ask. */
const OLDER = (payload: object): [string, object] => {
  const at = { agent: 'main', trace_id: 't1', requested_at: '2026-04-25T10:00:00Z' };
  return ['harn.hitl.requested', { request_id: 'h1', kind: 'approval', ...at, payload }];
};

test.each([
  ['as an update', [APPROVAL]],
  ['in the older form', [OLDER({ action: 'deploy', detail: { to: 'prod' }, quorum: 1 })]],
  ['in both forms', [OLDER({ approval_request: DEPLOY }), APPROVAL]],
])(
  'a question of the agent %s is in the inbox once; an answer from there reaches the agent, and the receipt has both',
  async (_, asked) => {
    const stage = await opened(harn);
    const { answers, over } = asking(stage, ...asked);
    await stage.home.answer(await question(stage), { approved: true, reason: 'go on' });
    expect((await over).result).toEqual(END);
    expect(answers).toMatchObject([{ sessionId: 's1', request_id: 'h1', approved: true, reason: 'go on' }]);
    expect(stage.editor.frames.filter(({ method }) => method === 'session/request_permission')).toEqual([]);
    const [receipt] = await stage.home.receipts((await stage.task()).id);
    expect(receipt?.approvals).toMatchObject([{ decision: 'approved' }]);
    const frames = stage.editor.frames.filter(({ method }) => asked.some(([sent]) => sent === method));
    expect(frames.map(({ params }) => params)).toEqual(asked.map(([, params]) => params));
    expect(receipt?.side_effects.tool_calls).toMatchObject([
      { call_id: 'hitl-h1', tool: 'deploy', status: 'succeeded' },
    ]);
  },
);

test("the editor's own call is the answer, in the log and to the agent", async () => {
  const stage = await opened(harn);
  const { answers, over } = asking(stage, request('h2', 'question', { question: 'Which branch?' }));
  const ask = await question(stage);
  const params = { sessionId: 's1', request_id: 'h2', answer: 'main' };
  expect((await stage.editor.ask('harn.hitl.respond', params)).result).toEqual({ ok: true });
  await over;
  expect(answers).toEqual([params]);
  expect(await stage.home.runtime.store.get('ask', ask)).toMatchObject({ state: 'answered', answered_by: 'local:ana' });
});

test('the editor’s call is answered also where a rule answers the question first', async () => {
  const answering = latch();
  const slow: PolicyEngine = {
    name: 'slow',
    async decide({ tool }) {
      if (tool === 'deploy') await answering.promise;
      return { verdict: 'allow', reason: 'fine', engine: 'slow' };
    },
  };
  const stage = await opened(harn, '[{ id: all, then: allow }]', [slow]);
  const { answers, over } = asking(stage, APPROVAL);
  await stage.editor.received(
    ({ params }) => (params?.update as { sessionUpdate?: string })?.sessionUpdate === 'hitl_request',
  );
  const called = stage.editor.ask('harn.hitl.respond', { sessionId: 's1', request_id: 'h1', approved: false });
  // Frames are read in their order: once this one has come back, the call has been read.
  stage.agent.on('_test/after', () => ({}));
  await stage.editor.ask('_test/after', { sessionId: 's1' });
  answering.open();
  expect((await called).error?.message).toBe('the question has its answer already');
  await over;
  expect(answers).toMatchObject([{ request_id: 'h1', approved: true }]);
});

test('an editor without the profile is asked by us, and a question the agent resolves itself is closed', async () => {
  const stage = await opened({});
  stage.editor.on('session/request_permission', picks('reject_once'));
  const { answers, over } = asking(stage, APPROVAL);
  await over;
  expect(answers).toMatchObject([{ request_id: 'h1', approved: false }]);

  const second = await opened(harn);
  second.agent.on('session/prompt', async () => {
    second.agent.notify(...APPROVAL);
    await question(second);
    const resolved = { requestId: 'h1', kind: 'approval', outcome: 'timeout' };
    second.agent.notify('session/update', update('hitl_resolved', { _meta: { harn: resolved } }));
    const open = () => second.home.runtime.store.list({ object: 'ask', where: { state: 'open' } });
    await expect.poll(open).toEqual([]);
    return END;
  });
  expect((await second.prompt()).result).toEqual(END);
});

test('a command that an agent has its host run is decided as a command', async () => {
  const rules = '[{ id: no-rm, when: { command: "rm *" }, then: block, say: nothing is removed here }]';
  const stage = await opened(harn, rules);
  stage.editor.on('host/call', () => ({ exit_code: 0 }));
  stage.editor.on('session/request_permission', picks('allow_once'));
  const answers: unknown[] = [];
  stage.agent.on('session/prompt', async () => {
    const call = async (name: string, args: object) => {
      const { result, error } = await stage.agent.ask('host/call', { sessionId: 's1', name, args });
      answers.push(result ?? error?.message);
    };
    await call('process.exec', { command: 'rm -r build' });
    await call('process.exec', { argv: ['make'] });
    await call('process.list_shells', {});
    return END;
  });
  await stage.prompt();
  expect(answers).toEqual(['Refused by rule no-rm: nothing is removed here', { exit_code: 0 }, { exit_code: 0 }]);
  const [receipt] = await stage.home.receipts((await stage.task()).id);
  expect(receipt?.side_effects.tool_calls.map(({ tool, metadata }) => [tool, metadata?.verdict])).toEqual([
    ['process.exec', 'block'],
    ['process.exec', 'escalate'],
    ['process.list_shells', 'allow'],
  ]);
});
