import { existsSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { storyEvidence, storyInput, storyLog } from '../fixtures/receipts/story.ts';
import type { CoreEvent } from '../src/model/events.ts';
import { Receipt } from '../src/model/receipt.ts';
import type { JsonObject } from '../src/model/schema.ts';
import { validator } from '../src/model/validate.ts';
import { buildReceipt, summaryOf, type UnsealedReceipt } from '../src/receipt/build.ts';
import { canonicalJson, hashOf } from '../src/receipt/canonical-json.ts';
import { createEvidence, foldEvidence } from '../src/receipt/evidence.ts';
import { replayInput } from '../src/receipt/materials.ts';
import { sealReceipt } from '../src/receipt/seal.ts';

const harn = new URL('../../shared/data/harn/', import.meta.url);
const fits = validator(Receipt);
const signer = {
  keyId: 'key_test',
  sign: () => ({ key_id: 'key_test', algorithm: 'none', signature: 'none' }),
  mac: () => 'none',
};
const head = { previous: null, index: 0, tree: { size: 0, frontier: [] } };
const sealed = (receipt: UnsealedReceipt) => sealReceipt(receipt, head, signer).receipt;

const AT = '2026-11-16T09:00:10.000Z';
function event(n: number, kind: string, payload: JsonObject, more: Partial<CoreEvent> = {}): CoreEvent {
  return {
    id: `evt_${String(n).padStart(16, '0')}`,
    object: 'event',
    created_at: AT,
    updated_at: AT,
    metadata: {},
    event: kind,
    resource: { object: 'task', id: 'task_fix' },
    sequence: n,
    payload,
    ...more,
  };
}
function told(events: readonly [kind: string, payload: JsonObject, more?: Partial<CoreEvent>][]) {
  return events.reduce(
    (known, [kind, payload, more], n) => foldEvidence(known, event(n + 1, kind, payload, more)),
    createEvidence(),
  );
}
const receiptOf = (...events: [string, JsonObject, Partial<CoreEvent>?][]) => buildReceipt(storyInput(told(events)));
const onlyCall = (...events: [string, JsonObject][]) => {
  const calls = receiptOf(...events).side_effects.tool_calls;
  expect(calls).toHaveLength(1);
  return calls[0]!;
};
const requested = (more: JsonObject = {}): [string, JsonObject] => [
  'tool.requested',
  {
    tool_call_id: 'c',
    name: 'deploy',
    kind: 'tool',
    input: { env: 'prod' },
    effect: 'publish',
    evidence: 'held',
    ...more,
  },
];
const decided = (verdict: string, more: JsonObject = {}): [string, JsonObject] => [
  'vendor.tollbridge.decided',
  {
    action: { id: 'a', kind: 'tool', tool_call_id: 'c', tool: 'deploy', effect: 'publish', evidence: 'held' },
    decision: { verdict, reason: 'because', engine: 'rules', ...more },
  },
];

describe('the story', () => {
  test('a task with everything in it becomes this receipt', () => {
    const evidence = storyEvidence();
    const receipt = buildReceipt(storyInput(evidence, { replay_input: replayInput(evidence, 'task_fix') }));
    const expected = readFileSync(new URL('../fixtures/receipts/receipt.json', import.meta.url), 'utf8');
    expect(receipt).toEqual(JSON.parse(expected));
    expect(summaryOf(receipt)).toBe('task task_fix SUCCEEDED: 5 tool calls, 0.002 USD');
  });

  test('folding in pieces, twice over, or all at once comes to the same', () => {
    const log = storyLog();
    const once = log.reduce(foldEvidence, createEvidence());
    const half = log.slice(0, 15).reduce(foldEvidence, createEvidence());
    expect(half.sequence).toBe(15);
    expect(half.cursor).toBe('evt_0000000000000015');
    expect(log.reduce(foldEvidence, half)).toEqual(once);
    expect(once.sequence).toBe(30);
  });

  test('folding leaves what was known before as it was', () => {
    const log = storyLog();
    const states = log.map((_, n) => log.slice(0, n).reduce(foldEvidence, createEvidence()));
    const before = states.map((state) => canonicalJson(buildReceipt(storyInput(state))));
    for (const state of states) log.reduce(foldEvidence, state);
    expect(states.map((state) => canonicalJson(buildReceipt(storyInput(state))))).toEqual(before);
  });

  test('the same input gives the same bytes', () => {
    const bytes = () => canonicalJson(buildReceipt(storyInput(storyEvidence())));
    expect(bytes()).toBe(bytes());
  });
});

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

describe('approvals', () => {
  const opened: [string, JsonObject] = [
    'vendor.tollbridge.ask_opened',
    { ask: { id: 'ask_1', kind: 'approval', action: { kind: 'tool', tool: 'deploy' }, question: 'May it?' } },
  ];
  const closed = (state: string): [string, JsonObject] => [
    'vendor.tollbridge.ask_closed',
    { ask_id: 'ask_1', state, by: 'user_ada', at: '2026-11-16T09:00:11.000Z' },
  ];

  test.each([
    ['approved', 'approved'],
    ['answered', 'approved'],
    ['denied', 'denied'],
    ['expired', 'timeout'],
    ['canceled', 'canceled'],
    ['a word never met', 'canceled'],
  ])('%s is told as %s', (state, decision) => {
    expect(receiptOf(opened, closed(state)).approvals).toEqual([
      {
        approval_id: 'ask_1',
        action: 'tool:deploy',
        actor: 'user_ada',
        decided_at: '2026-11-16T09:00:11.000Z',
        decision,
        evidence_hash: hashOf({
          id: 'ask_1',
          kind: 'approval',
          action: { kind: 'tool', tool: 'deploy' },
          question: 'May it?',
        }),
        quorum_proof: decision === 'approved' ? { required: 1, satisfied: 1 } : null,
      },
    ]);
  });

  test('a question still open when the task ended was canceled by its end', () => {
    expect(receiptOf(opened).approvals).toMatchObject([
      { actor: 'gateway_test', decision: 'canceled', decided_at: '2026-11-16T09:01:20.000Z' },
    ]);
  });

  test('a question for a value is told as an input, not as an approval', () => {
    const asked: [string, JsonObject] = ['vendor.tollbridge.ask_opened', { ask: { id: 'ask_1', kind: 'input' } }];
    const receipt = receiptOf(asked, closed('answered'));
    expect(receipt.approvals).toEqual([]);
    expect(receipt.metadata).toMatchObject({ inputs: { answered: 1 } });
  });
});

describe('what was not said', () => {
  test('an empty log makes a valid receipt that claims nothing', () => {
    const receipt = receiptOf();
    expect(fits(sealed(receipt))).toBe(true);
    expect(receipt.metadata).toEqual({
      chain: { scope: 'workspace', id: 'ws_shop' },
      evidence: { held: 0, asked: 0, observed: 0 },
      not_reported: ['usage', 'model'],
    });
    expect(receipt.cost).toEqual({ currency: 'USD', total: 0, provider_breakdown: [] });
    expect(receipt.autonomy_budget.consumed).toEqual({ tool_calls: 0, wall_time_ms: 80_000 });
    expect(receipt.model_route.chosen_model).toEqual({ provider: 'none', model: 'none' });
    expect(receipt.lifecycle.started_at).toBe('2026-11-16T09:00:00.000Z');
    expect(receipt.trust).toEqual({ start_tier: 'act_with_approval', end_tier: 'act_with_approval' });
  });

  test('tokens without money, and money without tokens, are told apart', () => {
    const tokens = receiptOf(['vendor.tollbridge.usage', { provider: 'p', model: 'm', input_tokens: 5 }]);
    expect(tokens.metadata?.not_reported).toEqual(['cost']);
    expect(tokens.cost.provider_breakdown).toEqual([
      { provider: 'p', model: 'm', amount: 0, input_tokens: 5, metadata: { amount_not_reported: true } },
    ]);
    const money = receiptOf(['vendor.tollbridge.usage', { usd_micros: 5 }]);
    expect(money.metadata?.not_reported).toEqual(['tokens', 'model']);
    expect(money.autonomy_budget.consumed.usd).toBe(0.000005);
  });

  test('money is added in whole millionths', () => {
    const parts = Array.from({ length: 10 }, (): [string, JsonObject] => [
      'vendor.tollbridge.usage',
      { provider: 'p', usd_micros: 100_000 },
    ]);
    expect(receiptOf(...parts).cost.total).toBe(1);
  });

  test('flags come from the end and from the log', () => {
    const end = { state: 'CANCELED', still_running: true, not_reported: ['side_effects'] } as const;
    expect(buildReceipt(storyInput(createEvidence(), { end })).metadata).toMatchObject({
      still_running: true,
      not_reported: ['side_effects', 'usage', 'model'],
    });
    expect(receiptOf(['vendor.tollbridge.recovered', {}]).metadata).toMatchObject({ interrupted: true });
    expect(receiptOf(['vendor.tollbridge.passthrough', {}]).metadata).toMatchObject({ unmodelled_calls: 1 });
  });

  test('only what was all held, answered and recorded can be replayed byte for byte', () => {
    const span: [string, JsonObject] = ['span.completed', { span: { kind: 'llm', call_id: '1' }, response: 'yes' }];
    const answer: [string, JsonObject] = ['tool.completed', { tool_call_id: 'c', status: 'ok', output: 1 }];
    const determinism = (...events: [string, JsonObject, Partial<CoreEvent>?][]) =>
      replayInput(told(events), 'task_fix').determinism;
    expect(determinism(span, requested(), answer)).toBe('byte_deterministic');
    expect(determinism(span, requested())).toBe('best_effort');
    expect(determinism(requested(), answer)).toBe('best_effort');
    expect(determinism(span, requested({ evidence: 'observed' }), answer)).toBe('best_effort');
    expect(determinism(span, ['note', {}, { metadata: { redactions: [{ field: '/a', reason: 'r' }] } }])).toBe(
      'best_effort',
    );
  });
});

describe('a log that holds anything', () => {
  const kinds = [...new Set(storyLog().map((each) => each.event)), 'artifact.updated', 'vendor.tollbridge.passthrough'];
  const oddities: unknown[] = [null, [], 'text', 7, { tool_call_id: 'c' }, { tool_call_id: 5 }, ODD()];

  function ODD() {
    const members = ['tool_call_id', 'name', 'input', 'output', 'ask', 'ask_id', 'action', 'decision', 'span', 'model'];
    members.push(
      'provider',
      'usd_micros',
      'input_tokens',
      'path',
      'type',
      'operation',
      'artifact',
      'task',
      'status',
      'by',
    );
    return Object.fromEntries(members.map((key) => [key, '\ud800']));
  }

  test.each(kinds)('%s with an odd payload still leaves a valid receipt', (kind) => {
    for (const payload of oddities) {
      const receipt = receiptOf([
        kind,
        payload as JsonObject,
        { trace_id: '\udc00', metadata: { redactions: [null, {}] } },
      ]);
      expect(fits(sealed(receipt)), JSON.stringify(payload)).toBe(true);
    }
  });

  test('absurd figures cannot make a receipt impossible', () => {
    const huge: [string, JsonObject] = [
      'vendor.tollbridge.usage',
      { provider: 'p', usd_micros: Number.MAX_SAFE_INTEGER, input_tokens: Number.MAX_SAFE_INTEGER },
    ];
    const receipt = receiptOf(huge, huge);
    expect(receipt.autonomy_budget.consumed.input_tokens).toBe(9007199254740991);
    expect(fits(sealed(receipt))).toBe(true);
  });

  test('a failure and metadata are made signable', () => {
    const receipt = buildReceipt(
      storyInput(createEvidence(), {
        end: { state: 'FAILED', failure: { code: 'odd', message: 'half \ud800', details: { n: 2 ** 60 } } },
        metadata: { note: '\udfff' },
      }),
    );
    expect(receipt.lifecycle).toMatchObject({
      final_state: 'FAILED',
      failure: { code: 'odd', message: 'half \ufffd', details: { n: '1152921504606847000' } },
    });
    expect(fits(sealed(receipt))).toBe(true);
  });

  test('what was merely too long for an event is not a result', () => {
    const artifact = { id: 'artifact_1', kind: 'other', sha256: 'A'.repeat(64), uri: null };
    expect(
      receiptOf(['artifact.created', { artifact: { ...artifact, metadata: { spilled: true } } }]).final_artifacts,
    ).toEqual([]);
    expect(receiptOf(['artifact.created', { artifact }]).final_artifacts).toEqual([
      { artifact_id: 'artifact_1', kind: 'other', uri: 'artifact://artifact_1', sha256: `sha256:${'a'.repeat(64)}` },
    ]);
  });
});

describe('the schema', () => {
  test('built receipts fit ours, and the published one where it is at hand', () => {
    const evidence = storyEvidence();
    const receipts = [
      buildReceipt(storyInput(evidence, { replay_input: replayInput(evidence, 'task_fix') })),
      buildReceipt(storyInput(evidence, { budget_limit: { usd: 2 }, subject: { object: 'outcome', id: 'o' } })),
      buildReceipt(storyInput(createEvidence(), { end: { state: 'CANCELED' } })),
      buildReceipt(replayFixtureInput()),
    ].map(sealed);
    for (const receipt of receipts) expect(fits(receipt)).toBe(true);

    const published = new URL('agents-protocol-receipts/schemas/receipt-2026-04-25.schema.json', harn);
    if (!existsSync(published)) return;
    const ajv = new Ajv2020({ strict: false });
    formats.default(ajv);
    const theirs = ajv.compile(JSON.parse(readFileSync(published, 'utf8')));
    for (const receipt of receipts) {
      theirs(receipt);
      expect(theirs.errors ?? []).toEqual([]);
    }
  });

  test('one wrong member is enough not to fit', () => {
    const receipt = sealed(buildReceipt(storyInput(createEvidence())));
    expect(fits({ ...receipt, extra: 1 })).toBe(false);
    expect(fits({ ...receipt, chain: { previous_receipt_hash: null } })).toBe(false);
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

describe('replays', () => {
  test('the published replay receipt is what the builder makes, chain and signatures aside', () => {
    const receipt = buildReceipt(replayFixtureInput());
    expect(hashOf(receipt)).toBe('sha256:5bc37ce8347cfec1f1148d54aa13604b099b2a3fb775813bbe3df860bb5b9eac');
    const published = new URL('agents-protocol-replay/fixtures/valid/task-replay-receipt.json', harn);
    if (!existsSync(published)) return;
    const { chain: _, signatures: __, ...body } = JSON.parse(readFileSync(published, 'utf8'));
    expect(canonicalJson(receipt)).toBe(canonicalJson(body));
  });

  test('a replay does nothing again: no approvals, no effects, no cost, no trace of its own', () => {
    const replay = { source: 'tollbridge', source_task_id: 'task_source', mode: 'exact' } as const;
    const receipt = buildReceipt(storyInput(storyEvidence(), { replay, times: { completed_at: AT } }));
    expect(receipt).not.toHaveProperty('approvals');
    expect(receipt.identifiers).not.toHaveProperty('trace_id');
    expect(receipt.issued_at).toBe(AT);
    expect(receipt.side_effects).toEqual({ fs_writes: [], network_egress: [], tool_calls: [], a2a_handoffs: [] });
    expect(receipt.cost).toEqual({ currency: 'USD', total: 0, provider_breakdown: [] });
    expect(receipt.redactions).toEqual([]);
    expect(receipt.deltas).toEqual([]);
    expect(receipt.metadata).toEqual({ source: 'tollbridge', source_task_id: 'task_source', replay_mode: 'exact' });
    expect(receipt.model_route.route_policy_reason).toBe('replayed from recorded provider response');
  });

  test('sealing puts a place into metadata only where there is one', () => {
    const replay = { source: 'tollbridge', source_task_id: 'task_source', mode: 'exact' } as const;
    const placed = sealReceipt(buildReceipt(storyInput(createEvidence())), { ...head, index: 7 }, signer);
    expect(placed.receipt.metadata?.chain).toEqual({ scope: 'workspace', id: 'ws_shop', index: 7 });
    const unplaced = sealReceipt(buildReceipt(storyInput(createEvidence(), { replay })), head, signer);
    expect(unplaced.receipt.metadata).not.toHaveProperty('chain');
  });
});

/** The published replay fixture, with its placeholder hashes handed in as it prints them. */
function replayFixtureInput() {
  const of = (digit: string) => `sha256:${digit.repeat(64)}`;
  const artifact = { id: 'artifact_replay_output', kind: 'dataset', uri: null, sha256: 'd'.repeat(64) };
  const model = { provider: 'fixture', model: 'replay-fixture' };
  const evidence = told([
    ['artifact.created', { artifact }],
    ['span.completed', { span: { kind: 'llm', call_id: 'main:1' }, model }],
  ]);
  return {
    receipt_id: 'receipt_replay_01JZ6Y3B5K0QJ9GM61VZKX7P6G',
    evidence,
    task: {
      id: 'task_replay_01JZ6Y2ZKMB8H8DMXBGXR1FPGS',
      session_id: 'session_replay_fixture',
      workspace_id: 'workspace_replay_fixture',
      created_at: '2026-04-25T19:16:10Z',
    },
    end: { state: 'COMPLETED' as const },
    times: { started_at: '2026-04-25T19:16:14Z', completed_at: '2026-04-25T19:17:33Z' },
    issuer: {
      id: 'harness_conformance',
      kind: 'harness' as const,
      name: 'Harn replay conformance',
      version: 'agents-protocol-2026-04-25',
    },
    identifiers: { trace_id: 'trace_replay_fixture' },
    trust: {
      start_tier: 'act_auto' as const,
      end_tier: 'act_auto' as const,
      policy_ref: 'policy_replay_conformance',
    },
    replay_input: {
      determinism: 'byte_deterministic' as const,
      materials: [
        {
          kind: 'event_log' as const,
          id: 'event_log_source_task',
          uri: 'artifact://artifact_event_log_source_task',
          sha256: of('c'),
          content_type: 'application/jsonl',
        },
        {
          kind: 'llm_provider_response' as const,
          id: 'llm:main:1',
          sha256: of('a'),
          metadata: { override_key: 'llm:main:1' },
        },
      ],
    },
    deltas: [
      {
        delta_id: 'delta_llm_main_1',
        operation: 'replace' as const,
        path: '/replay_input/materials/llm:main:1',
        override_key: 'llm:main:1',
        event_id: 'event_01JZ7001',
        before_sha256: of('1'),
        after_sha256: of('a'),
        reason: 'agents-protocol replay conformance fixture',
      },
      {
        delta_id: 'delta_time_started_at',
        operation: 'replace' as const,
        path: '/lifecycle/started_at',
        override_key: 'time:started_at',
        event_id: 'event_01JZ7000',
        before_sha256: of('2'),
        after_sha256: of('b'),
        reason: 'pin replay clock',
      },
    ],
    replay: {
      source: 'agents-protocol-replay-conformance-fixture',
      source_task_id: 'task_source_01JZ6Y2ZKMB8H8DMXBGXR1FPGS',
      mode: 'with_overrides' as const,
    },
  };
}
