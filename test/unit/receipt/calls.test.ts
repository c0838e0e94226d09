/** What a receipt says of tool calls: how each ended, what ran, and what was said to the outside. */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/model/schema.ts';
import { hashOf } from '../../../src/receipt/seal/canonical-json.ts';
import { AT, receiptOf, requested } from '../../support/receipts/from-events.ts';

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
  test('a call still open at the end may have run, and says so', () => {
    expect(onlyCall(requested(), decided('allow'))).toMatchObject({
      status: 'failed',
      metadata: {
        outcome: 'unknown',
        outcome_reason: 'it was let through and not seen to end',
        stopped_while: 'running',
        evidence: 'held',
        verdict: 'allow',
        engine: 'rules',
      },
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

  test('a denied call was not run; one that ran all the same is reported as it happened', () => {
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

  test('an input that changes after the decision is reported as what ran', () => {
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

  test('a result without a request is recorded as observed', () => {
    expect(onlyCall(['tool.completed', { tool_call_id: 'c', status: 'ok' }])).toEqual({
      tool: 'unknown',
      call_id: 'c',
      status: 'succeeded',
      metadata: { evidence: 'observed', outcome: 'succeeded' },
    });
  });

  const end = (event: string, more: JsonObject = {}): [string, JsonObject] => [
    event,
    { tool_call_id: 'c', name: 'deploy', status: event === 'tool.completed' ? 'ok' : 'error', ...more },
  ];
  const reported = (...events: [string, JsonObject][]) => {
    const { status, metadata } = onlyCall(...events);
    return [metadata?.outcome, status, metadata?.outcome_reason];
  };

  test('each outcome has its word, and the status of the schema never claims more', () => {
    const allowed = [requested(), decided('allow')];
    const denied: [string, JsonObject] = ['tool.denied', { tool_call_id: 'c', name: 'deploy', by: 'u', reason: 'no' }];
    expect(reported(...allowed, end('tool.completed'))).toEqual(['succeeded', 'succeeded', undefined]);
    expect(reported(...allowed, end('tool.failed'))).toEqual(['failed', 'failed', undefined]);
    expect(reported(...allowed, end('tool.completed', { status: 'error' }))).toEqual(['failed', 'failed', undefined]);
    expect(reported(...allowed, end('tool.failed', { code: 'canceled' }))).toEqual(['canceled', 'canceled', undefined]);
    expect(reported(...allowed, end('tool.failed', { code: 'deadline_exceeded', error: 'no answer' }))).toEqual([
      'unknown',
      'failed',
      'no answer',
    ]);
    expect(reported(requested(), decided('block'))).toEqual(['refused', 'canceled', 'because']);
    expect(reported(requested(), decided('escalate'), denied)).toEqual(['refused', 'canceled', 'no']);
    // Its agent reports it, as failed, canceled or lost: it was refused all the same, and is one call.
    for (const code of ['boom', 'canceled', 'outcome_unknown']) {
      expect(reported(requested(), decided('block'), end('tool.failed', { code }))[0]).toBe('refused');
    }
  });

  test('a question that was taken back is a call that was canceled, and was refused by nobody', () => {
    const back: [string, JsonObject] = ['tool.denied', { tool_call_id: 'c', by: 'u', code: 'approval_withdrawn' }];
    expect(reported(requested(), decided('escalate'), back)).toEqual(['canceled', 'canceled', undefined]);
  });

  test('what was unknown is known once its end is reported; a definite end stands, and what disagrees is reported beside it', () => {
    const lost = end('tool.failed', { code: 'outcome_unknown', error: 'still running' });
    const late = onlyCall(requested(), decided('allow'), lost, end('tool.completed', { output: 'built' }));
    expect(late).toMatchObject({
      status: 'succeeded',
      output_hash: hashOf('built'),
      metadata: { outcome: 'succeeded' },
    });
    for (const gone of ['outcome_reason', 'stopped_while', 'code']) expect(late.metadata).not.toHaveProperty(gone);
    const twice = onlyCall(requested(), end('tool.completed', { output: 1 }), end('tool.failed', { output: 2 }));
    expect(twice).toMatchObject({ status: 'succeeded', output_hash: hashOf(1), metadata: { also_reported: 'failed' } });
    const same = onlyCall(requested(), end('tool.completed'), end('tool.completed'));
    expect(same.metadata).not.toHaveProperty('also_reported');
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
