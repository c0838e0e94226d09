import { describe, expect, test } from 'vitest';
import { settingsOf } from '../../../adapters/ahp/config.ts';
import { AGENT, type Agent, event, OBEDIENT, openAgent, type Said } from '../../support/ahp/gateway.ts';
import { eventually } from '../../support/eventually.ts';

const RULES = `
- { id: shell, when: { tool: bash }, then: allow }
- { id: no-rm, when: { tool: rm }, then: block, say: nothing is deleted }
- { id: mail, when: { tool: send_mail }, then: ask, say: a person decides }
- { id: copies, when: { tool: cp }, then: modify, set: { to: backup }, say: copies go to the backup }
- { id: nightly, when: { tool: deploy }, then: defer, retry_after: 20m, say: only at night }
- { id: secrets, when: { kind: prompt, arguments: { prompt: "*password*" } }, then: block, say: no passwords in prompts }
- { id: polite, when: { kind: prompt, arguments: { prompt: "fix it" } }, then: modify, set: { prompt: fix it safely }, say: safely }
`;
const call = (tool_name: string, args: object = {}) => ({ action_type: 'tool_call', tool_name, arguments: args });

async function answering(agent: Agent, body: object): Promise<void> {
  const { id } = await seenTask(agent);
  const [ask] = await agent.t.asks(id);
  await agent.t.answer(ask!.id, body);
}

async function seenTask(agent: Agent): Promise<Said> {
  return await eventually(() => agent.task(), 'the task');
}

describe('pre_action', () => {
  test('is allowed, blocked, rewritten and put off as the rules say', async () => {
    const agent = await openAgent({ rules: RULES, config: OBEDIENT });
    expect(await agent.ask('pre_action', call('bash', { command: 'ls' }))).toEqual({
      decision: 'allow',
      metadata: { policy: 'shell' },
    });
    expect(await agent.ask('pre_action', call('rm'))).toEqual({
      decision: 'block',
      reason: 'nothing is deleted',
      metadata: { policy: 'no-rm' },
    });
    expect(
      await agent.ask('pre_action', { tool: 'cp', args: { from: 'a', to: 'b' }, working_directory: '/w' }),
    ).toEqual({
      decision: 'modify',
      modified_payload: { tool: 'cp', args: { from: 'a', to: 'backup' }, working_directory: '/w' },
      metadata: { policy: 'copies' },
    });
    expect(await agent.ask('pre_action', call('deploy'))).toEqual({
      decision: 'defer',
      retry_after_ms: 1_200_000,
      reason: 'only at night',
    });
  });

  test('waits for a person and is answered with what they say', async () => {
    const agent = await openAgent({ rules: RULES });
    const yes = agent.ask('pre_action', call('send_mail', { to: 'bo' }));
    await answering(agent, { approved: true });
    expect(await yes).toMatchObject({ decision: 'allow' });
    const no = agent.ask('pre_action', call('send_mail', { to: 'ana' }));
    await answering(agent, { approved: false, reason: 'not her' });
    expect(await no).toMatchObject({ decision: 'block', reason: 'not her' });
  });

  test('is escalated when the time is up; asking again joins the question, and an answer is used once', async () => {
    const agent = await openAgent({ rules: RULES, config: { timeout_ms: 400, ...OBEDIENT } });
    const mail = call('send_mail', { to: 'bo' });
    const first = await agent.ask('pre_action', mail);
    const { id } = await agent.task();
    const [ask] = await agent.t.asks(id);
    expect(first).toEqual({ decision: 'escalate', reason: 'a person decides', escalation_target: ask!.id });
    expect(await agent.ask('pre_action', mail)).toEqual(first);
    expect(await agent.t.asks(id)).toHaveLength(1);
    await agent.t.answer(ask!.id, { approved: true });
    expect(await agent.ask('pre_action', mail)).toMatchObject({ decision: 'allow' });
    const again = await agent.ask('pre_action', mail);
    expect(again.decision).toBe('escalate');
    expect(again.escalation_target).not.toBe(ask!.id);
    const requests = (await agent.t.events(id)).filter(({ event: kind }) => kind === 'tool.requested');
    expect(requests).toHaveLength(2);
  });

  test('one approval lets one of two equal calls through', async () => {
    const agent = await openAgent({ rules: RULES, config: { timeout_ms: 3000, ...OBEDIENT } });
    const mail = call('send_mail', { to: 'bo' });
    await agent.tell('session_start', {});
    const both = [agent.ask('pre_action', mail), agent.ask('pre_action', mail)];
    await answering(agent, { approved: true });
    const decisions = (await Promise.all(both)).map(({ decision }) => decision).sort();
    expect(decisions).toEqual(['allow', 'escalate']);
  });

  test('a question asked before a restart is joined after it', async () => {
    const agent = await openAgent({ rules: RULES, config: { timeout_ms: 400, ...OBEDIENT } });
    const mail = call('send_mail', { to: 'bo' });
    const { escalation_target: ask } = await agent.ask('pre_action', mail);
    const later = await openAgent({
      rules: RULES,
      dir: agent.t.dir,
      config: { timeout_ms: 400, workspace: agent.workspace, ...OBEDIENT },
    });
    expect((await later.ask('pre_action', mail)).escalation_target).toBe(ask);
    await later.t.answer(ask, { approved: true });
    expect(await later.ask('pre_action', mail)).toMatchObject({ decision: 'allow' });
    const { data } = await later.t.bridge.list(later.caller.actor, { object: 'task' });
    expect(data).toHaveLength(1);
  });

  test('what goes round in circles is refused', async () => {
    const agent = await openAgent({ rules: RULES, config: { hop: 'us' } });
    const looped = await agent.ask('pre_action', call('bash'), { metadata: { via: ['them', 'us'] } });
    expect(looped).toEqual({
      decision: 'block',
      reason: 'us is asked about its own question: harnesses go in a circle',
    });
  });
});

test.each([
  [undefined, 8000],
  [60_000, 8000],
  [5000, 3000],
  [3000, 1500],
])('where %s ms are declared, people have %s ms', (timeout_ms, ms) => {
  expect(settingsOf(timeout_ms === undefined ? {} : { timeout_ms }).holdMs).toBe(ms);
});

test('every harness a question came through shortens the time people have', async () => {
  const agent = await openAgent({ rules: '- { id: ask, when: { kind: tool }, then: ask }', config: OBEDIENT });
  const mail = { tool: 'mail', arguments: {} };
  const via = Array.from({ length: 6 }, (_, hop) => `gateway-${hop}`);
  expect(await agent.ask('pre_action', mail, { metadata: { via } })).toMatchObject({ decision: 'escalate' });
  const sure = { session_id: 's', confirmation_type: 'safety_confirm', message: 'sure?' };
  expect(await agent.ask('confirmation', sure, { metadata: { via } })).toEqual({ decision: 'escalate' });
  // Two seconds are left of the eight people would have had.
}, 7_500);

test('prompts are decided about, and rewritten in the words they came in', async () => {
  const agent = await openAgent({ rules: RULES, config: OBEDIENT });
  expect(await agent.ask('pre_prompt', { prompt: 'my password is x' })).toMatchObject({ decision: 'block' });
  expect(await agent.ask('pre_prompt', { prompt: 'fix it', message_count: 3 })).toMatchObject({
    decision: 'modify',
    modified_payload: { prompt: 'fix it safely', message_count: 3 },
  });
  const said = (await agent.t.events((await agent.task()).id)).find(({ event: kind }) => kind === 'user.message');
  expect(JSON.stringify(said?.payload)).toContain('fix it safely');
});

describe('typed events', () => {
  test('memories are recalled from what the gateway remembers', async () => {
    const agent = await openAgent({
      rules:
        '- { id: no-secrets, when: { kind: memory.read, arguments: { query: "*secret*" } }, then: block, say: not those }',
    });
    const memory = (content: string, more: object = {}) =>
      agent.t.send('resource.create', {
        object: 'memory',
        body: {
          scope: 'workspace',
          owner_id: agent.workspace,
          content,
          provenance: { source: 'ana' },
          confidence: 0.5,
          workspace_id: agent.workspace,
          ...more,
        },
      });
    await memory('build with make all');
    await memory('the cat is called Tom');
    await memory('build nothing', { expires_at: '2025-01-01T00:00:00.000Z' });
    // Of others: another session of the same workspace, another workspace, a persona this agent does not work as.
    const session = await agent.t.send('session.create', { workspace_id: agent.workspace });
    await memory('build for another session', { scope: 'session', owner_id: session.resource.id });
    const away = (await agent.t.send('resource.create', { object: 'workspace', body: { name: 'w', root: 'x:y' } }))
      .resource.id;
    await memory('build somewhere else', { owner_id: away, workspace_id: away });
    await memory('build in secret', { visibility: 'receipt_only' });
    const recall = (query: string) =>
      agent.ask('memory_recall', {
        session_id: 's',
        query,
        memory_type: 'semantic',
        max_results: 5,
        working_directory: '/',
      });
    expect(await recall('how to build')).toEqual({
      decision: 'allow',
      injected_facts: [{ content: 'build with make all', source: 'ana', confidence: 0.5 }],
    });
    expect(await recall('the secret')).toMatchObject({ decision: 'block', reason: 'not those' });
    const read = (await agent.t.events((await agent.task()).id)).filter(
      ({ event: kind }) => kind === 'agent.memory_read',
    );
    expect(read.map(({ payload }) => payload.query)).toEqual(['how to build']);
  });

  test('each memory that was handed out is one event, from which a replay knows what the run depends on', async () => {
    const agent = await openAgent();
    const made: string[] = [];
    for (const content of ['build with make', 'build on Mondays \ud800']) {
      const body = { scope: 'workspace', owner_id: agent.workspace, content, provenance: { source: 'ana' } };
      made.push((await agent.t.send('resource.create', { object: 'memory', body })).resource.id);
    }
    const recall = { session_id: 's', query: 'build', memory_type: 'any', max_results: 5, working_directory: '/' };
    expect((await agent.ask('memory_recall', recall)).injected_facts).toHaveLength(2);
    expect((await agent.ask('memory_recall', { ...recall, query: 'nothing like it' })).injected_facts).toEqual([]);
    const target = { location: { path: '.', location_type: 'd' } };
    await agent.ask('context_perception', {
      session_id: 's',
      intent: 'locate',
      target,
      context: { workspace: '/', query: 'make' },
    });
    await agent.tell('session_end', {});
    const { id } = await agent.task();
    await agent.t.until(id);
    const read = (await agent.t.events(id)).filter(({ event: kind }) => kind === 'agent.memory_read');
    expect(read.slice(0, 2).map(({ payload }) => payload.memory_id)).toEqual(made);
    for (const { payload } of read)
      expect(payload).toMatchObject({
        scope: 'workspace',
        owner_id: agent.workspace,
        as_of: expect.any(String),
        content_hash: expect.stringMatching(/^sha256:/),
      });
    const replay = async () => {
      const { resource } = await agent.t.send('task.replay', { task_id: id });
      return await agent.t.until(resource.id);
    };
    expect(await replay()).toMatchObject({ status: 'COMPLETED' });
    await agent.t.send('resource.delete', { object: 'memory', id: made[1]! });
    expect(await replay()).toMatchObject({
      status: 'FAILED',
      failure: {
        code: 'replay_dependency_unavailable',
        details: { dependency: { kind: 'memory', id: made[1] } },
      },
    });
  });

  test('internal memories take the scope for them', async () => {
    const reported: unknown[] = [];
    for (const scopes of [
      ['*'],
      ['sessions:*', 'tasks:*', 'events:read', 'workspaces:read', 'memories:read', 'others:read'],
    ]) {
      const agent = await openAgent({ actor: { ...AGENT, scopes } });
      for (const visibility of ['public', 'internal', 'receipt_only']) {
        const body = { scope: 'workspace', owner_id: agent.workspace, content: `${visibility} build`, provenance: {} };
        await agent.t.send('resource.create', { object: 'memory', body: { ...body, visibility } });
      }
      const recall = { session_id: 's', query: 'build', memory_type: 'any', max_results: 5, working_directory: '/' };
      const { injected_facts } = await agent.ask('memory_recall', recall);
      reported.push(injected_facts.map(({ content }: { content: string }) => content));
    }
    expect(reported).toEqual([['public build', 'internal build'], ['public build']]);
  });

  test('a limit is waited for as long as our own quota says', async () => {
    const agent = await openAgent();
    const limit = { session_id: 's', limit_type: 'llm_token_limit', retry_after_ms: 3000, current_usage: 'all' };
    expect(await agent.ask('rate_limit', limit)).toEqual({ decision: 'retry', retry_after_ms: 3000 });
    const quota = await agent.t.send('resource.create', {
      object: 'quota',
      body: {
        scope: 'workspace',
        limits: { tokens: 10 },
        usage: { tokens: 10 },
        reset_at: new Date(Date.parse(agent.t.clock.now()) + 120_000).toISOString(),
      },
    });
    await agent.t.send('resource.update', {
      object: 'workspace',
      id: agent.workspace,
      body: { quota_id: quota.resource.id },
    });
    expect(await agent.ask('rate_limit', limit)).toMatchObject({ decision: 'skip' });
    await agent.t.send('resource.update', {
      object: 'quota',
      id: quota.resource.id,
      body: { limits: { tokens: 10 }, usage: { tokens: 5 } },
    });
    expect(await agent.ask('rate_limit', limit)).toEqual({ decision: 'retry', retry_after_ms: 3000 });
  });

  test.each(['tenant', 'organization'])('a used-up limit of scope %s is no limit to try again at', async (scope) => {
    const agent = await openAgent();
    const limit = { session_id: 's', limit_type: 'llm_token_limit', retry_after_ms: 3000, current_usage: 'all' };
    expect(await agent.ask('rate_limit', limit)).toEqual({ decision: 'retry', retry_after_ms: 3000 });
    const spent = { limits: { tokens: 10 }, usage: { tokens: 10 } };
    const soft = { scope, ...spent, soft_limit: true, hard_limit: false };
    await agent.t.send('resource.create', { object: 'quota', body: soft });
    expect(await agent.ask('rate_limit', limit)).toEqual({ decision: 'retry', retry_after_ms: 3000 });
    await agent.t.send('resource.create', { object: 'quota', body: { scope, ...spent } });
    expect(await agent.ask('rate_limit', limit)).toMatchObject({ decision: 'skip' });
  });

  test('a confirmation is a question to people unless a rule answers it', async () => {
    const agent = await openAgent({
      rules: '- { id: cheap, when: { kind: elicit, tool: "confirmation:cost_confirm" }, then: allow }',
      config: { timeout_ms: 400, ...OBEDIENT },
    });
    const sure = (confirmation_type: string) => ({ session_id: 's', confirmation_type, message: 'sure?' });
    expect(await agent.ask('confirmation', sure('cost_confirm'))).toEqual({ decision: 'approve' });
    expect(await agent.ask('confirmation', sure('safety_confirm'))).toEqual({ decision: 'escalate' });
    await answering(agent, { approved: false, reason: 'no' });
    expect(await agent.ask('confirmation', sure('safety_confirm'))).toEqual({ decision: 'reject', reason: 'no' });
  });

  test('each is really decided: a rule against it is its own refusal', async () => {
    const kinds = ['background', 'enrich', 'memory.read', 'plan', 'reason', 'elicit'];
    const agent = await openAgent({
      rules: `- { id: nothing, when: { kind: [${kinds.join(', ')}] }, then: block, say: closed }`,
    });
    const payloads = {
      idle: { idle_duration_ms: 1, idle_reason: 'r' },
      intent_detection: { session_id: 's', prompt: 'where?', workspace: '/' },
      context_perception: {
        session_id: 's',
        intent: 'locate',
        target: { location: { path: '.', location_type: 'd' } },
        context: { workspace: '/' },
      },
      memory_recall: { session_id: 's', query: 'q', memory_type: 'm', max_results: 1, working_directory: '/' },
      planning: { session_id: 's', task_description: 't', available_strategies: [] },
      reasoning: { session_id: 's', reasoning_type: 're_act', problem_statement: 'hidden thought' },
      rate_limit: { session_id: 's', limit_type: 'llm_token_limit', retry_after_ms: 1, current_usage: 'u' },
      confirmation: { session_id: 's', confirmation_type: 'user_confirm', message: 'm' },
    };
    const words: Record<string, string> = {};
    for (const [type, payload] of Object.entries(payloads)) words[type] = (await agent.ask(type, payload)).decision;
    expect(words).toEqual({
      idle: 'defer',
      intent_detection: 'block',
      context_perception: 'block',
      memory_recall: 'block',
      planning: 'block',
      reasoning: 'block',
      rate_limit: 'skip',
      confirmation: 'reject',
    });
    expect(JSON.stringify(await agent.t.all())).not.toContain('hidden thought');
  });

  test('what real agents send instead is understood; what nobody understands is refused, not an error', async () => {
    const agent = await openAgent({ rules: '- { id: yes, when: { kind: elicit }, then: allow }' });
    expect(await agent.ask('confirmation', { confirmation_type: 'SafetyConfirm', message: 'm' })).toEqual({
      decision: 'approve',
    });
    expect(await agent.ask('reasoning', { reasoning_type: 'ChainOfThought', problem_statement: 'p' })).toEqual({
      decision: 'allow',
    });
    expect(
      await agent.ask('context_perception', {
        intent: 'Locate',
        target_type: 'function',
        target_name: 'main',
        query: 'main',
        working_directory: '/',
      }),
    ).toMatchObject({ decision: 'allow' });
    expect(await agent.ask('context_perception', { intent: 'sing' })).toMatchObject({ decision: 'block' });
    expect(await agent.ask('confirmation', 7)).toMatchObject({ decision: 'reject' });
    expect(await agent.ask('idle', {})).toMatchObject({ decision: 'defer' });
    expect(await agent.ask('rate_limit', null)).toMatchObject({ decision: 'skip' });
  });
});

test('queries get a yes, a no, or the word of a person', async () => {
  const agent = await openAgent({
    rules:
      '- { id: yes, when: { kind: query, tool: may_i_read }, then: allow, say: go on }\n- { id: no, when: { kind: query, tool: may_i_delete }, then: block, say: never }\n- { id: ask, when: { kind: query, tool: may_i_send }, then: ask, say: who knows }',
  });
  const query = (query_type: string) =>
    agent.request('ahp/query', { session_id: 's', agent_id: 'a', query_type, payload: { question: '?' } });
  expect(await query('may_i_read')).toEqual({ answer: 'yes', reason: 'go on' });
  expect(await query('should_i_proceed')).toEqual({
    answer: 'no',
    reason: 'no rule answers this query, which counts as no',
  });
  expect(await query('may_i_delete')).toEqual({ answer: 'no', reason: 'never' });
  const asked = query('may_i_send');
  await expect.poll(async () => (await agent.task()).status).toBe('INPUT_REQUIRED');
  await answering(agent, { value: { to: 'bo', not: 'everyone' } });
  expect(await asked).toEqual({ answer: { to: 'bo', not: 'everyone' }, reason: 'who knows' });
  const again = query('may_i_send');
  await answering(agent, { approved: false, reason: 'ask me tomorrow' });
  expect(await again).toEqual({ answer: 'no', reason: 'ask me tomorrow' });
  const reported = (await agent.t.all()).map(({ event: kind }) => kind);
  expect(reported.filter((kind) => /input|auth_required|approval/.test(kind))).toEqual([
    'task.input_required',
    'user.input_submitted',
    'task.input_required',
    'user.input_submitted',
  ]);
});

test('an older peer may tell that it is idle; a newer one has to ask', async () => {
  const agent = await openAgent();
  const idle = { idle_duration_ms: 1, idle_reason: 'r' };
  expect(await agent.tell('idle', idle)).toMatchObject({ kind: 'rejected' });
  const hello = {
    protocol_version: '2.2',
    agent_info: { framework: 'f', version: '1', capabilities: [] },
    session_id: 's',
    agent_id: 'a',
  };
  await agent.request('ahp/handshake', hello);
  expect(await agent.tell('idle', idle)).toEqual({ kind: 'taken' });
});

test('a gateway that requires a handshake refuses agents that sent none', async () => {
  const agent = await openAgent({ config: { strict_handshake: true } });
  expect(await agent.request('ahp/event', event('pre_action', {}))).toMatchObject({ error: { code: -32000 } });
  await agent.request('ahp/handshake', {});
  expect(await agent.ask('pre_prompt', { prompt: 'p' })).toEqual({ decision: 'allow' });
});
