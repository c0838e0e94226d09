/** What a receipt says of tool calls: how each ended, what ran, and what was said to the outside. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../src/model/schema.ts';
import { hashOf } from '../src/receipt/canonical-json.ts';
import { AT, receiptOf, requested } from './support/receipt-told.ts';

const onlyCall = (...events: [string, JsonObject][]) => {
  const calls = receiptOf(...events).side_effects.tool_calls;
  expect(calls).toHaveLength(1);
  return calls[0]!;
};

const decided = (verdict: string, more: JsonObject = {}): [string, JsonObject] => [
  'vendor.tollbridge.decided',
  {
    action: { id: 'a', kind: 'tool', tool_call_id: 'c', tool: 'deploy', effect: 'publish', evidence: 'held' },
    decision: { verdict, reason: 'because', engine: 'rules', ...more },
  },
];

describe('tool calls', () => {
  test('a call still open at the end is canceled and says it was running', () => {
    expect(onlyCall(requested(), decided('allow'))).toMatchObject({
      status: 'canceled',
      metadata: { stopped_while: 'running', evidence: 'held', verdict: 'allow', engine: 'rules' },
    });
  });

  test('a call that was stopped says what it was doing', () => {
    const stop: [string, JsonObject] = [
      'tool.failed',
      { tool_call_id: 'c', name: 'deploy', status: 'error', code: 'canceled' },
    ];
    const approved: [string, JsonObject] = [
      'tool.approved',
      { tool_call_id: 'c', name: 'deploy', by: 'u', ask_id: 'k' },
    ];
    const used: [string, JsonObject] = ['vendor.tollbridge.ask_used', { ask_id: 'k', at: AT }];
    const doing = (...events: [string, JsonObject][]) => onlyCall(...events, stop).metadata?.stopped_while;
    expect(doing(requested(), decided('allow'))).toBe('running');
    expect(doing(requested(), decided('escalate'))).toBe('waiting_for_approval');
    expect(doing(requested(), decided('escalate'), approved)).toBe('approved_but_not_begun');
    expect(doing(requested(), decided('escalate'), approved, used)).toBe('running');
    expect(doing(requested(), decided('defer'))).toBe('deferred');
    expect(onlyCall(requested(), decided('allow'), stop).status).toBe('canceled');
  });

  test('a call whose outcome nobody knows has failed and says so', () => {
    const lost: [string, JsonObject] = [
      'tool.failed',
      { tool_call_id: 'c', name: 'deploy', status: 'error', code: 'outcome_unknown' },
    ];
    expect(onlyCall(requested(), decided('allow'), lost)).toMatchObject({
      status: 'failed',
      metadata: { code: 'outcome_unknown', stopped_while: 'running' },
    });
  });

  test('a denied call was not run; one that ran all the same is told as it happened', () => {
    const denied: [string, JsonObject] = [
      'tool.denied',
      { tool_call_id: 'c', name: 'deploy', by: 'u', code: 'denied' },
    ];
    const ran: [string, JsonObject] = [
      'tool.completed',
      { tool_call_id: 'c', name: 'deploy', status: 'ok', output: 1 },
    ];
    const call = onlyCall(requested(), decided('block'), denied);
    expect(call).toMatchObject({ status: 'canceled', metadata: { denied: true, verdict: 'block', code: 'denied' } });
    expect(call.metadata).not.toHaveProperty('stopped_while');
    expect(onlyCall(requested(), decided('block'), denied, ran)).toMatchObject({
      status: 'succeeded',
      metadata: { denied: true, ran_though_denied: true },
    });
  });

  test('rewritten arguments: the hash is of what ran, the hash of what was asked for stands beside it', () => {
    const rewrite = decided('modify', { arguments: { env: 'staging' } });
    const expected = {
      input_hash: hashOf({ env: 'staging' }),
      metadata: { requested_input_hash: hashOf({ env: 'prod' }), verdict: 'modify' },
    };
    expect(onlyCall(requested(), rewrite)).toMatchObject(expected);
    // The decision may be written before the request it is about.
    expect(onlyCall(rewrite, requested())).toMatchObject(expected);
  });

  test('an input that changes after the decision is told as what ran', () => {
    expect(onlyCall(requested(), decided('allow'), requested({ input: { env: 'other' } }))).toMatchObject({
      input_hash: hashOf({ env: 'other' }),
      metadata: { requested_input_hash: hashOf({ env: 'prod' }) },
    });
  });

  test('the first answer stands', () => {
    const answer = (output: string): [string, JsonObject] => [
      'tool.completed',
      { tool_call_id: 'c', name: 'deploy', status: 'ok', output },
    ];
    expect(onlyCall(requested(), answer('one'), answer('two')).output_hash).toBe(hashOf('one'));
  });

  test('a result nobody asked for is told as observed', () => {
    expect(onlyCall(['tool.completed', { tool_call_id: 'c', status: 'ok' }])).toEqual({
      tool: 'unknown',
      call_id: 'c',
      status: 'succeeded',
      metadata: { evidence: 'observed' },
    });
  });

  test('a value without a canonical form has no hash and says so', () => {
    expect(onlyCall(requested({ input: { id: 2 ** 60 } }))).toMatchObject({ metadata: { unhashable: true } });
    expect(onlyCall(requested({ input: { id: '\ud800' } }))).not.toHaveProperty('input_hash');
  });
});

test('what is said about a call to the outside stands in its entry, as far as it is text', () => {
  const metadata = {
    request_hash: 'sha256:ab',
    protocol: 'x 1.0',
    odd: Number.POSITIVE_INFINITY,
    deep: { a: 1 },
  } as unknown as JsonObject;
  const effect = { type: 'network', destination: 'peer.example', purpose: 'work', metadata };
  const receipt = receiptOf(['vendor.tollbridge.side_effect', effect]);
  expect(receipt.side_effects.network_egress).toEqual([
    {
      destination: 'peer.example',
      purpose: 'work',
      metadata: { request_hash: 'sha256:ab', protocol: 'x 1.0', evidence: 'observed' },
    },
  ]);
});
