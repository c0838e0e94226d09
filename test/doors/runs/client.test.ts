/** Our client against our own server: everything the demo agent can do, over broken lines and restarts on both sides. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { latch, scriptedAgent, untilAborted } from '../../support/gateway/agents.ts';
import { of, states } from '../../support/gateway/test-gateway.ts';
import { openPair, remoteAgent } from '../../support/runs/two-gateways.ts';

describe('work done by a remote', () => {
  test('hello: given once, streamed, said, completed', async () => {
    const pair = await openPair();
    const { id, session } = await pair.give('hello');
    expect((await pair.near.until(id)).status).toBe('COMPLETED');
    const events = await pair.near.events(id);
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
    expect(of(events, 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text)).toEqual([
      'Hello! I am ',
      'the demo agent: ',
      'no network, no ',
      'keys, always the ',
      'same answer to ',
      'the same words.',
    ]);
    expect(await pair.said(session)).toEqual([
      'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.',
    ]);
    const run = await pair.there();
    expect(of(events, 'agent.handoff').map(({ payload }) => payload)).toEqual([
      { target_agent: 'far', task_id: run, status: 'accepted' },
      {
        target_agent: 'far',
        task_id: run,
        status: 'completed',
        receipt_id: expect.any(String),
        link: expect.objectContaining({
          checked: 'claimed',
          protocol: 'runs',
          receipt_hash: expect.stringMatching(/^sha256:/),
        }),
      },
    ]);
    const [create] = pair.relay.calls.filter(({ method }) => method === 'POST');
    expect(create).toMatchObject({
      path: '/v1/runs',
      headers: { 'idempotency-key': `tollbridge-${id}`, authorization: 'Bearer ana:ana-secret' },
    });
    const [receipt] = await pair.near.receipts(id);
    expect(receipt?.metadata?.not_reported).toContain('work done by a remote: only its own report is known');
  });

  test('tools are observed: their names, outcomes and what may be shown of them', async () => {
    const pair = await openPair();
    const { id } = await pair.give('read plan');
    await pair.near.until(id);
    const events = await pair.near.events(id);
    expect(of(events, 'tool.requested').map(({ payload }) => payload)).toMatchObject([
      { name: 'read_note', evidence: 'observed', effect: 'unknown' },
    ]);
    expect(of(events, 'tool.completed')[0]?.payload).toMatchObject({
      name: 'read_note',
      status: 'ok',
      output: { output: { preview: '{"text":"plan says: First look, then leap."}' } },
    });
    const [receipt] = await pair.near.receipts(id);
    expect(receipt?.side_effects.tool_calls).toMatchObject([{ tool: 'read_note', status: 'succeeded' }]);
  });

  test('a yes given here is a signal there, and exactly that act runs', async () => {
    const pair = await openPair();
    const { id } = await pair.give('send the plan to bo');
    const [ask] = await pair.near.asks(id);
    expect(ask).toMatchObject({
      kind: 'approval',
      question: 'May agent:far use send_mail?',
      action: {
        claims: { title: expect.stringContaining('May agent:demo use send_mail on bo?') },
        tool: 'send_mail',
        arguments: { to: 'bo', text: 'the plan' },
        evidence: 'asked',
      },
    });
    await pair.near.answer(ask!.id, { approved: true, reason: 'Bo waits' });
    expect((await pair.near.until(id)).status).toBe('COMPLETED');
    expect(pair.tools.outbox).toEqual([{ to: 'bo', text: 'the plan' }]);
    const there = await pair.far.at.events(`task_${(await pair.there()).slice(4)}`);
    expect(of(there, 'user.tool_confirmation')[0]?.payload).toMatchObject({ approved: true, reason: 'Bo waits' });
    const events = await pair.near.events(id);
    expect(of(events, 'tool.requested')).toHaveLength(1);
    expect(of(events, 'agent.reasoning_summary')[0]?.payload.summary).toBe(
      'judge: await_input: mail: mail is asked about',
    );
  });

  test('a no given here fails the run there, because runs have no smaller no', async () => {
    const pair = await openPair();
    const { id } = await pair.give('send the plan to bo');
    const [ask] = await pair.near.asks(id);
    await pair.near.answer(ask!.id, { approved: false, reason: 'not finished' });
    expect(await pair.near.until(id)).toMatchObject({ status: 'FAILED', failure: { code: 'rejected_by_signal' } });
    expect(pair.tools.outbox).toEqual([]);
    const events = await pair.near.events(id);
    expect(of(events, 'tool.denied').map(({ payload }) => payload.reason)).toEqual(['not finished']);
    expect(of(events, 'tool.failed')).toEqual([]);
  });

  test('a rule of ours answers for us', async () => {
    const rules = '[{ id: all, then: allow }, { id: no-mail, when: { tool: send_mail }, then: block, say: no mail }]';
    const pair = await openPair({ near: { rules } });
    const { id } = await pair.give('send the plan to bo');
    expect((await pair.near.until(id)).status).toBe('FAILED');
    expect(pair.tools.outbox).toEqual([]);
    expect(of(await pair.near.events(id), 'tool.denied')[0]?.payload).toMatchObject({ reason: 'no mail' });
  });

  test('a value asked for there is given here', async () => {
    const pair = await openPair();
    const { id, session } = await pair.give('ask which colour?');
    const [ask] = await pair.near.asks(id);
    expect(ask).toMatchObject({ kind: 'input', question: 'which colour?' });
    await pair.near.answer(ask!.id, { value: 'blue' });
    await pair.near.until(id);
    expect(await pair.said(session)).toEqual(['You said: blue']);
  });

  test('a failure there is a failure here, by its name', async () => {
    const pair = await openPair();
    const { id } = await pair.give('fail with out_of_paper');
    expect(await pair.near.until(id)).toMatchObject({ status: 'FAILED', failure: { code: 'out_of_paper' } });
  });

  test('what is forbidden there is reported as forbidden, and the work goes on', async () => {
    const rules =
      '[{ id: all, then: allow }, { id: kept, when: { tool: delete_note }, then: block, say: notes are kept }]';
    const pair = await openPair({ far: { rules } });
    const { id } = await pair.give('delete plan');
    expect((await pair.near.until(id)).status).toBe('COMPLETED');
    expect(of(await pair.near.events(id), 'tool.failed')[0]?.payload).toMatchObject({
      code: 'refused',
      error: expect.stringContaining('far refused the call: '),
    });
  });

  test('a cancel here cancels there', async () => {
    const begun = latch();
    const agent = scriptedAgent(async (_sink, _work, signal) => {
      begun.open();
      await untilAborted(signal);
      return { state: 'CANCELED' };
    });
    const pair = await openPair({ far: { agents: [agent] } });
    const { id } = await pair.give('go');
    await begun.promise;
    await pair.near.send('task.cancel', { task_id: id });
    expect((await pair.near.until(id)).status).toBe('CANCELED');
    await pair.far.until(await pair.there(), 'cancelled');
  });

  test('a run that stalls there is asked to go on, where that is wanted', async () => {
    let starts = 0;
    const agent = scriptedAgent(
      async (sink, { resumed }, signal) => {
        starts += 1;
        await sink.emit({ event: 'vendor.tollbridge.note', payload: { note: 'begun' } });
        if (!resumed) await untilAborted(signal);
        if (signal.aborted) throw new Error('let go');
        return undefined;
      },
      { resume: true },
    );
    const pair = await openPair({ far: { agents: [agent], config: { stalled: { after_ms: 100, sweep_ms: 10 } } } });
    const { id } = await pair.give('go');
    expect((await pair.near.until(id)).status).toBe('COMPLETED');
    expect(starts).toBe(2);
    const reported = (await pair.near.events(id)).map(({ event }) => event);
    expect(reported.filter((event) => event.startsWith('vendor.runs.'))).toEqual([
      'vendor.runs.stalled',
      'vendor.runs.resumed',
    ]);
  });

  test('earlier turns go with the next run, and what is sensitive goes tagged', async () => {
    const pair = await openPair();
    const room = await pair.near.room();
    const text = (said: string) => ({ type: 'text', text: said, visibility: 'public' });
    await pair.near.until((await room.task({ input: { role: 'user', parts: [text('hello')] } })).id);
    const value = { user_query: 'hello', db: { ssn_last_four: 'canary-1234' } };
    const second = await room.task({
      input: { role: 'user', parts: [{ type: 'json', value, visibility: 'internal' }] },
    });
    expect((await pair.near.until(second.id)).status).toBe('COMPLETED');
    const there = JSON.stringify(await pair.far.at.all());
    expect(there).toContain('"conversation"');
    expect(there).toContain('input.db.ssn_last_four');
    expect(there).not.toContain('canary-1234');
  });
});

describe('when the line is bad', () => {
  test('a stream that breaks off again and again is gone on with from its number: nothing twice, nothing left out', async () => {
    const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal });
    const pair = await openPair({ far: { agents: [createDemoAgent({ pause, stepMs: 5, streamMs: 15 })] } });
    pair.relay.breakStreamsAfter(400);
    const { id, session } = await pair.give('hello then read plan then hello');
    expect((await pair.near.until(id)).status).toBe('COMPLETED');
    expect(await pair.said(session)).toHaveLength(3);
    const deltas = of(await pair.near.events(id), 'vendor.tollbridge.message_delta').map(({ payload }) => payload.text);
    expect(deltas.join('')).toBe(
      'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.' +
        'plan says: First look, then leap.' +
        'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.',
    );
    const streams = pair.relay.calls.filter(({ path }) => path.includes('/stream'));
    expect(streams.length).toBeGreaterThan(1);
    expect(streams.slice(1).every(({ path }) => /cursor=[1-9]/.test(path))).toBe(true);
  });

  test('a server without streams is polled', async () => {
    const pair = await openPair();
    pair.relay.answerWith(({ url }, response) => {
      if (!url?.includes('/stream')) return false;
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end('{"error":"not_found","reason_code":"NO_STREAMS","request_id":"x"}');
      return true;
    });
    const { id, session } = await pair.give('hello');
    expect((await pair.near.until(id)).status).toBe('COMPLETED');
    expect(await pair.said(session)).toHaveLength(1);
    expect(pair.relay.calls.some(({ path }) => /\/events\?cursor=/.test(path))).toBe(true);
  });

  test('a request that may or may not have arrived is sent again and done once', async () => {
    const pair = await openPair();
    let broken = 2;
    pair.relay.answerWith(({ method, url }, response) => {
      if (method !== 'POST' || url !== '/v1/runs' || broken-- <= 0) return false;
      response.writeHead(503).end('{}');
      return true;
    });
    const { id } = await pair.give('hello');
    expect((await pair.near.until(id)).status).toBe('COMPLETED');
    expect(of(await pair.far.at.all(), 'task.submitted')).toHaveLength(1);
  });

  test('a remote that stays away too long has failed us', async () => {
    const never = scriptedAgent(() => new Promise(() => {}));
    const pair = await openPair({
      far: { agents: [never], settings: { graceMs: 10 } },
      client: { timeouts: { silence_ms: 300, poll_ms: 50 } },
    });
    const { id } = await pair.give('go');
    await pair.there();
    await pair.near.seen(id, 'agent.handoff');
    pair.relay.to(undefined);
    pair.relay.cut();
    expect(await pair.near.until(id)).toMatchObject({ status: 'FAILED', failure: { code: 'upstream_unavailable' } });
  });

  test('a restart of ours finds the same run again and says nothing twice', async () => {
    const go = latch();
    const slow = createDemoAgent({ pause: () => go.promise });
    const pair = await openPair({ far: { agents: [slow] } });
    const { id } = await pair.give('hello then wait 1 then hello');
    await pair.near.seen(id, 'agent.message');
    const agents = [remoteAgent(pair.relay.url)];
    const later = await pair.near.reopen({ agents });
    go.open();
    expect((await later.until(id)).status).toBe('COMPLETED');
    const events = await later.events(id);
    const messages = of(events, 'agent.message').map(({ payload }) => JSON.stringify(payload).includes('Hello!'));
    expect(messages.filter(Boolean)).toHaveLength(2);
    expect(of(await pair.far.at.all(), 'task.submitted')).toHaveLength(1);
  });
});

test('what a remote of this protocol said is shown by this door as it came', async () => {
  const pair = await openPair();
  const { id } = await pair.give('read plan');
  await pair.near.until(id);
  const far = (await pair.far.events(await pair.there())).filter(({ type }) => type === 'run.tool.invoked');
  const { createRunRenderer } = await import('../../../adapters/runs/server/render/events.ts');
  const rendition = createRunRenderer();
  const near = (await pair.near.events(id)).flatMap((event) => rendition.render(event));
  expect(near.filter(({ type }) => type === 'run.tool.invoked').map(({ payload }) => payload)).toEqual(
    far.map(({ payload }) => payload),
  );
});
