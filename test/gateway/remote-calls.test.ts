/** Calls behind another gateway: what a receipt here says of them is what the other gateway says it did. */
import { describe, expect, test } from 'vitest';
import type { Receipt } from '../../src/model/receipt.ts';
import { hashOf } from '../../src/receipt/seal/canonical-json.ts';
import { of } from '../support/gateway/test-gateway.ts';
import { openGateways, WORK_PROTOCOLS } from '../support/gateway/two-gateways.ts';
import { OPEN, RULES } from '../support/harn/two-gateways.ts';

const ASKS_SHORTLY = `
- { id: all, then: allow }
- { id: mail, when: { tool: send_mail }, then: ask, say: mail is asked about, expires: 1s }
`;
const MODIFIES = `
- { id: all, then: allow }
- { id: inside, when: { tool: send_mail, arguments: { to: everyone } }, then: modify, set: { to: team }, say: team only }
`;
const BLOCKS = `
- { id: all, then: allow }
- { id: no-mail, when: { tool: send_mail }, then: block, say: no mail today }
`;

const callsIn = (receipt: Receipt | undefined) => receipt?.side_effects.tool_calls ?? [];

describe.each(WORK_PROTOCOLS)('over %s', (protocol) => {
  test('arguments rewritten there: the hash of those that ran, and of those asked for', async () => {
    const two = await openGateways(protocol, { far: { rules: MODIFIES }, near: { rules: OPEN } });
    const id = await two.give('send the plan to everyone');
    await two.near.until(id);
    expect(two.tools.outbox.map(({ to }) => to)).toEqual(['team']);
    const [receipt] = await two.near.receipts(id);
    expect(callsIn(receipt)).toMatchObject([
      {
        tool: 'send_mail',
        status: 'succeeded',
        input_hash: hashOf({ to: 'team', text: 'the plan' }),
        metadata: {
          requested_input_hash: hashOf({ to: 'everyone', text: 'the plan' }),
          remote: { remote: 'far', decision: 'approved', rule_id: 'inside', reason: 'team only' },
        },
      },
    ]);
  });

  test('blocked there: refused, with the rule and the reason of the other gateway, and no alarm', async () => {
    const two = await openGateways(protocol, { far: { rules: BLOCKS }, near: { rules: OPEN } });
    const id = await two.give('send the plan to bo');
    await two.near.until(id);
    const [receipt] = await two.near.receipts(id);
    expect(callsIn(receipt)).toMatchObject([
      {
        tool: 'send_mail',
        status: 'canceled',
        metadata: {
          denied: true,
          remote: { remote: 'far', decision: 'denied', rule_id: 'no-mail', reason: 'no mail today' },
        },
      },
    ]);
    expect(receipt?.metadata?.alarms).toBeUndefined();
    expect(receipt?.approvals).toEqual([]);
  });

  test('approved by an approver there: theirs is the approval, ours was taken back, and it ran without ours', async () => {
    const two = await openGateways(protocol, { far: { rules: RULES }, near: { rules: RULES } });
    const id = await two.give('send the plan to bo');
    await two.near.asks(id);
    const [there] = await two.far.asks(await two.farTask());
    await two.far.answer(there!.id, { approved: true, reason: 'fine here' });
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.approvals).toMatchObject([
      { action: 'tool:send_mail', actor: 'remote:far:ana', decision: 'approved', quorum_proof: { claimed_by: 'far' } },
    ]);
    expect(callsIn(receipt)).toMatchObject([
      { status: 'succeeded', metadata: { ran_without: 'waiting_for_approval', remote: { decision: 'approved' } } },
    ]);
    expect(of(await two.near.events(id), 'vendor.tollbridge.alarm').map(({ payload }) => payload.state)).toEqual([
      'waiting_for_approval',
    ]);
  });

  test('denied by an approver there while people here are asked', async () => {
    const two = await openGateways(protocol, { far: { rules: RULES }, near: { rules: RULES } });
    const id = await two.give('send the plan to bo');
    await two.near.asks(id);
    const [there] = await two.far.asks(await two.farTask());
    await two.far.answer(there!.id, { approved: false, reason: 'not from here' });
    expect((await two.near.until(id)).status).toBe('COMPLETED');
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.approvals).toMatchObject([{ actor: 'remote:far:ana', decision: 'denied' }]);
    expect(callsIn(receipt)).toMatchObject([
      { status: 'canceled', metadata: { denied: true, remote: { decision: 'denied', reason: 'not from here' } } },
    ]);
  });

  test('nobody answered in time there: a timeout here, too', async () => {
    const two = await openGateways(protocol, { far: { rules: ASKS_SHORTLY }, near: { rules: RULES } });
    const id = await two.give('send the plan to bo');
    // A run whose question nobody answers in time has failed; elsewhere the work goes on without.
    expect((await two.near.until(id)).status).toBe(protocol === 'runs' ? 'FAILED' : 'COMPLETED');
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.approvals).toMatchObject([{ actor: 'remote:far:bridge', decision: 'timeout' }]);
    expect(callsIn(receipt)).toMatchObject([
      {
        status: 'canceled',
        metadata: { denied: true, code: 'approval_timed_out', remote: { code: 'approval_timed_out' } },
      },
    ]);
  });

  test('answered here: one approval, and what the other gateway made of it is marked as relayed', async () => {
    const two = await openGateways(protocol, { far: { rules: RULES }, near: { rules: RULES } });
    const id = await two.give('send the plan to bo');
    const [ask] = await two.near.asks(id);
    await two.near.answer(ask!.id, { approved: true });
    await two.near.until(id);
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.approvals).toMatchObject([{ actor: 'ana', decision: 'approved' }]);
    expect(callsIn(receipt)).toMatchObject([{ status: 'succeeded', metadata: { remote: { relayed: true } } }]);
    expect(receipt?.metadata?.alarms).toBeUndefined();
  });

  test('a gateway here that allows everything answers for its rules', async () => {
    const two = await openGateways(protocol, { far: { rules: RULES }, near: { rules: OPEN } });
    const id = await two.give('send the plan to bo');
    await two.near.until(id);
    const [receipt] = await two.near.receipts(id);
    expect(receipt?.approvals).toEqual([]);
    expect(callsIn(receipt)).toMatchObject([{ status: 'succeeded', metadata: { remote: { relayed: true } } }]);
  });
});
