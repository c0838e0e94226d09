/** An exact replay: the record lived through again, with nothing done, nobody asked and nothing charged. */
import { describe, expect, test } from 'vitest';
import type { AskRecord } from '../../../../src/model/asks.ts';
import { Receipt } from '../../../../src/model/receipt.ts';
import type { Quota } from '../../../../src/model/resources.ts';
import { check } from '../../../../src/model/validate.ts';
import type { Row, Store } from '../../../../src/ports/index.ts';
import { ana, bo } from '../../../support/gateway/actors.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { all, kinds, openTestGateway, REAL_TIME, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { PERSONA } from '../../../support/policy/personas.ts';
import { everything, expectFaithful, play, RULES, replay, tools } from '../../../support/tasks/replay.ts';
import { sameReceipt, sameText } from '../../../support/tasks/same-receipt.ts';
import { scripted, stopped, text } from '../../../support/tasks/script.ts';

describe('an exact replay', () => {
  test('lives through everything again and does nothing', async () => {
    const { gateway, task, session, box, agent } = await play(everything);
    expect(task.status).toBe('COMPLETED');
    const [ran, starts] = [box.ran.length, agent.starts.length];
    const messages = await gateway.messages(session);
    const artifacts = await gateway.runtime.store.list({ object: 'artifact', limit: 200 });
    const again = await replay(gateway, task.id, { reason: 'to see' });
    expect(again).toMatchObject({
      status: 'COMPLETED',
      parent_task_id: task.id,
      created_by: 'ana',
      session_id: session,
    });
    expect([box.ran.length, agent.starts.length]).toEqual([ran, starts]);
    expect(await gateway.messages(session)).toEqual(messages);
    expect(await gateway.runtime.store.list({ object: 'artifact', limit: 200 })).toEqual(artifacts);
    expect(await gateway.openAsks()).toEqual([]);
    await expectFaithful(gateway, task, again);
    const events = await gateway.events(again.id);
    expect(kinds(events.slice(0, 3))).toEqual(['task.submitted', 'task.started', 'replay.started']);
    expect(events[2]!.payload).toMatchObject({
      source_task_id: task.id,
      mode: 'exact',
      overrides: [],
      reason: 'to see',
      rerun: false,
    });
    expect(kinds(events.slice(-3))).toEqual(['replay.completed', 'receipt.issued', 'task.completed']);
    expect(kinds(events)).not.toContain('vendor.tollbridge.quota_used');
    // Readers go on from the new ids.
    for (const event of await all(gateway.runtime.bridge.events(ana, { stream: { of: 'task', id: again.id } }))) {
      if (event.replay) expect(event.replay.replay_cursor).toBe(event.id);
    }
  });

  test('its receipt says what was replayed, from what, and claims nothing of its own', async () => {
    const { gateway, task } = await play(everything);
    const source = await gateway.receipt(task.id);
    const again = await replay(gateway, task.id);
    const receipt = await gateway.receipt(again.id);
    check(Receipt, receipt, 'the receipt');
    expect(receipt).toMatchObject({
      subject: { object: 'replay_segment', id: again.id },
      lifecycle: { ...source.lifecycle },
      issued_at: source.lifecycle.completed_at,
      deltas: [],
      redactions: [],
      cost: { currency: 'USD', total: 0, provider_breakdown: [] },
      autonomy_budget: { consumed: { usd: 0, input_tokens: 0, output_tokens: 0, tool_calls: 0, wall_time_ms: 0 } },
      side_effects: { fs_writes: [], network_egress: [], tool_calls: [], a2a_handoffs: [] },
      final_artifacts: source.final_artifacts,
      trust: source.trust,
      metadata: { source: 'tollbridge', source_task_id: task.id, replay_mode: 'exact' },
    });
    expect(receipt).not.toHaveProperty('approvals');
    expect(Object.keys(receipt.metadata!)).toHaveLength(3);
    expect(receipt.model_route.chosen_model).toEqual({ provider: 'acme', model: 'large' });
    expect(receipt.replay_input).toEqual({
      determinism: 'byte_deterministic',
      materials: [
        {
          kind: 'event_log',
          id: `event_log_${task.id}`,
          content_type: 'application/jsonl; digest=rfc6962-sha256; canonical=rfc8785',
          // The root its source's receipt has: both are over the same events.
          sha256: source.replay_input.materials[0]?.sha256,
          metadata: { task_id: task.id },
          uri: `/v1/tasks/${task.id}/events`,
        },
      ],
    });
    const verdict = await gateway.send('receipt.verify', { receipt_id: receipt.receipt_id });
    expect(verdict.details).toMatchObject({ valid: true });
  });

  test('twice gives the same receipt, also after the persona changed, and a replay can be replayed', async () => {
    const { gateway, task } = await play(everything);
    const [one, two] = [await replay(gateway, task.id), await replay(gateway, task.id)];
    expect(sameText(await gateway.receipt(one.id))).toBe(sameText(await gateway.receipt(two.id)));
    expect(sameReceipt(await gateway.receipt(one.id), await gateway.receipt(task.id))).toBe(false);
    const third = await replay(gateway, one.id);
    expect(third).toMatchObject({ status: 'COMPLETED', parent_task_id: one.id });
    await expectFaithful(gateway, one, third);
    const fourth = await replay(gateway, one.id);
    expect(sameText(await gateway.receipt(third.id))).toBe(sameText(await gateway.receipt(fourth.id)));
  });

  test('of a persona that has since been given more or less rope', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [scripted('one', async ({ sink }) => sink.emit(text('hi')))],
    });
    const persona = await gateway.send('resource.create', {
      object: 'persona',
      body: PERSONA,
    });
    const { id } = await gateway.submit(await gateway.session(), { persona_id: persona.resource.id });
    await gateway.until(id);
    const one = await replay(gateway, id);
    await gateway.send('resource.update', {
      object: 'persona',
      id: persona.resource.id,
      body: { autonomy_tier: 'act_auto' },
    });
    const two = await replay(gateway, id);
    expect((await gateway.receipt(two.id)).trust).toMatchObject({ start_tier: 'suggest', end_tier: 'suggest' });
    expect(sameText(await gateway.receipt(one.id))).toBe(sameText(await gateway.receipt(two.id)));
  });

  test('charges no quota', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      rules: RULES,
      tools: [tools()],
      agents: [
        scripted('one', async ({ sink }) => {
          await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c' });
          await sink.emit({ event: 'vendor.tollbridge.usage', payload: { usd_micros: 5, input_tokens: 7 } });
        }),
      ],
    });
    const limits = { tool_calls: 10, tasks: 10, usd_micros: 1000, input_tokens: 1000 };
    const quota = await gateway.send('resource.create', { object: 'quota', body: { scope: 'workspace', limits } });
    const workspace_id = await gateway.workspace({ quota_id: quota.resource.id });
    const { id } = await gateway.submit(await gateway.session({ workspace_id }));
    await gateway.until(id);
    const usage = async () => (await gateway.view<Quota & Row>('quota', quota.resource.id)).usage;
    const before = await usage();
    expect(before).toMatchObject({ tool_calls: 1, tasks: 1 });
    const again = await replay(gateway, id);
    expect(again.status).toBe('COMPLETED');
    expect(await usage()).toEqual(before);
  });

  test('is refused while the source still runs, and to a caller that may not see it', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', ({ signal }) => stopped(signal))] });
    const { id } = await gateway.submit(await gateway.session());
    expect(await refusalOf(replay(gateway, id))).toMatchObject({ kind: 'conflict' });
    await gateway.send('task.cancel', { task_id: id });
    const outsider = { ...bo, tenant_id: 'elsewhere' };
    const asked = gateway.send('task.replay', { task_id: id }, { actor: outsider });
    expect(await refusalOf(asked)).toMatchObject({ kind: 'not_found' });
    expect((await replay(gateway, id)).status).toBe('CANCELED');
  });

  test('the same key is the same replay', async () => {
    const { gateway, task } = await play(async () => undefined);
    const ask = () => gateway.send('task.replay', { task_id: task.id }, { idempotency: { key: 'k' } });
    const [one, two] = [await ask(), await ask()];
    expect(two).toMatchObject({ repeated: true, resource: { id: one.resource.id } });
    await gateway.runtime.idle();
    expect(await gateway.runtime.store.receipts({ task: one.resource.id })).toHaveLength(1);
  });
});

describe('questions of a replay', () => {
  test('are nobody else’s to answer, and are gone when it ends', async () => {
    const tries: string[] = [];
    let gateway: TestGateway | undefined;
    const meddle = (store: Store): Store => ({
      ...store,
      async commit(unit) {
        const committed = await store.commit(unit);
        for (const { event, replayed, payload } of committed.events) {
          if (!replayed || event !== 'vendor.tollbridge.ask_opened') continue;
          const { id, kind } = payload.ask as unknown as AskRecord;
          const body = kind === 'input' ? { value: 'blue' } : { approved: false };
          tries.push((await refusalOf(gateway!.answer(id, body, bo))).kind);
        }
        return committed;
      },
    });
    const played = await play(everything, { store: meddle });
    gateway = played.gateway;
    const again = await replay(gateway, played.task.id);
    expect(again.status).toBe('COMPLETED');
    expect(tries.length).toBeGreaterThan(4);
    expect(new Set(tries)).toEqual(new Set(['permission_denied']));
    expect(await gateway.openAsks()).toEqual([]);
    await expectFaithful(gateway, played.task, again);
  });
});
