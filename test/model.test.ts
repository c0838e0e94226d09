import type { TSchema } from 'typebox';
import { describe, expect, test } from 'vitest';
import { COMMANDS, type CommandKind } from '../src/model/commands.ts';
import { eventId, position } from '../src/model/events.ts';
import { asFault, Fault } from '../src/model/faults.ts';
import { Part, RESOURCES, type ResourceKind } from '../src/model/resources.ts';
import { check, validator } from '../src/model/validate.ts';
import {
  EVENT_KINDS,
  isSideEffect,
  isTerminal,
  mayFollow,
  OWN_EVENT_KINDS,
  TASK_STATES,
  TASK_TRANSITIONS,
} from '../src/model/words.ts';
import { checks } from './conformance/model.ts';

const TIME = '2026-02-03T04:05:06.789Z';
const HASH = 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2';

function enveloped(object: string, members: object): Record<string, unknown> {
  return { id: `${object}_1`, object, created_at: TIME, updated_at: TIME, metadata: {}, ...members };
}

const EXAMPLES: Readonly<Record<ResourceKind, Record<string, unknown>>> = {
  persona: enveloped('persona', {
    name: 'reviewer',
    version: '1',
    entry_workflow: 'review',
    description: '',
    autonomy_tier: 'suggest',
    receipt_policy: 'required',
    tools: ['read_*'],
    quota_id: null,
  }),
  workspace: enveloped('workspace', { name: 'house', root: 'file:///srv/house', default_branch_id: null }),
  session: enveloped('session', { workspace_id: 'workspace_1', state: 'IDLE', transcript: { message_count: 0 } }),
  task: enveloped('task', {
    session_id: 'session_1',
    workspace_id: 'workspace_1',
    status: 'WORKING',
    input: { role: 'user', parts: [{ type: 'text', text: 'hello', visibility: 'public' }] },
    created_by: 'ana',
    failure: { code: 'x', message: '', details: {} },
    started_at: TIME,
    completed_at: null,
  }),
  branch: enveloped('branch', { workspace_id: 'workspace_1', kind: 'task', base_ref: 'main' }),
  message: enveloped('message', { role: 'assistant', parts: [], session_id: null }),
  part: { type: 'tool_result', tool_call_id: 'c1', output: null, status: 'ok', visibility: 'internal' },
  artifact: enveloped('artifact', {
    kind: 'patch',
    mime_type: 'text/x-diff',
    uri: null,
    visibility: 'public',
    sha256: HASH,
  }),
  event: enveloped('event', {
    event: 'task.submitted',
    resource: { object: 'task', id: 'task_1' },
    sequence: 1,
    payload: {},
    replay: { source_task_id: 'task_1', replay_task_id: 'task_2', mode: 'exact' },
  }),
  receipt: enveloped('receipt', {
    subject: { object: 'task', id: 'task_1' },
    format: 'receipt-2026-04-25',
    summary: '',
    issued_at: TIME,
    issuer: 'bridge',
  }),
  memory: enveloped('memory', {
    scope: 'session',
    owner_id: 'session_1',
    content: 'likes tea',
    provenance: {},
    confidence: 0.5,
  }),
  vault: enveloped('vault', { workspace_id: null, provider: 'env', capabilities: [] }),
  connector: enveloped('connector', {
    provider: 'mail',
    workspace_id: 'workspace_1',
    status: 'ACTIVE',
    event_kinds: [],
  }),
  skill: enveloped('skill', {
    name: 'read_note',
    description: '',
    input_schema: { type: 'object' },
    output_schema: null,
  }),
  outcome: enveloped('outcome', { task_id: 'task_1', status: 'SUCCEEDED', summary: 'done', failure: null }),
  quota: enveloped('quota', { scope: 'workspace', limits: { tool_calls: 5 }, usage: { tool_calls: 0.5 } }),
};

describe('the sixteen resources', () => {
  test('are sixteen', () => {
    expect(Object.keys(RESOURCES)).toHaveLength(16);
  });

  test.each(Object.entries(EXAMPLES))('%s: an example passes, with all it brought', (kind, example) => {
    const strange = { ...example, x_unknown: { deep: [1, null, 'word'] }, metadata: { anything: true } };
    const before = structuredClone(strange);
    expect(check(RESOURCES[kind as ResourceKind], strange, kind)).toBe(strange);
    expect(strange).toEqual(before);
  });

  test.each(Object.keys(EXAMPLES))('%s: each required member is missed by name', (kind) => {
    const schema: TSchema & { required?: readonly string[] } = RESOURCES[kind as ResourceKind];
    const required = schema.required ?? [];
    expect(required.length).toBeGreaterThan(0);
    for (const member of required) {
      const { [member]: _, ...rest } = EXAMPLES[kind as ResourceKind];
      const fault = faultOf(() => check(schema, rest, kind));
      expect([fault.kind, fault.param]).toEqual(['invalid_request', `/${member}`]);
    }
  });

  const wrong: readonly [ResourceKind, object, string][] = [
    ['task', { id: 'not/an/id' }, '/id'],
    ['task', { id: '' }, '/id'],
    ['task', { object: 'session' }, '/object'],
    ['task', { created_at: 'yesterday' }, '/created_at'],
    ['task', { metadata: [] }, '/metadata'],
    ['task', { status: '' }, '/status'],
    ['task', { input: 'hello' }, '/input'],
    ['task', { failure: { code: 'x' } }, '/failure/message'],
    ['message', { parts: [{ type: 'text', visibility: 'public' }] }, '/parts/0/text'],
    ['message', { parts: [{ text: 'no type' }] }, '/parts/0/type'],
    ['artifact', { sha256: `sha256:${HASH}` }, '/sha256'],
    ['event', { sequence: -1 }, '/sequence'],
    ['event', { resource: { object: 'task' } }, '/resource/id'],
    ['memory', { confidence: 2 }, '/confidence'],
    ['quota', { limits: { tool_calls: 'many' } }, '/limits/tool_calls'],
  ];
  test.each(wrong)('%s with %j is refused at %s', (kind, change, param) => {
    const fault = faultOf(() => check(RESOURCES[kind], { ...EXAMPLES[kind], ...change }, kind));
    expect([fault.kind, fault.param]).toEqual(['invalid_request', param]);
    expect(fault.message.startsWith(`${kind}: `)).toBe(true);
  });

  test('a part of a kind we have not met is kept whole', () => {
    const part = { type: 'hologram', depth: 3, nested: { a: [1] } };
    expect(check(Part, part, 'part')).toBe(part);
    const message = { ...EXAMPLES.message, parts: [part] };
    expect(check(RESOURCES.message, message, 'message')).toBe(message);
  });
});

describe('words we have not met', () => {
  const places: readonly [ResourceKind, string][] = [
    ['task', 'status'],
    ['session', 'state'],
    ['outcome', 'status'],
    ['connector', 'status'],
    ['persona', 'autonomy_tier'],
    ['persona', 'receipt_policy'],
    ['branch', 'kind'],
    ['message', 'role'],
    ['artifact', 'kind'],
    ['artifact', 'visibility'],
    ['memory', 'scope'],
    ['quota', 'scope'],
  ];
  test.each(places)('%s.%s keeps them', (kind, member) => {
    const strange = { ...EXAMPLES[kind], [member]: 'SOMETHING_NEW' };
    expect(check(RESOURCES[kind], strange, kind)).toHaveProperty(member, 'SOMETHING_NEW');
  });

  test.each(['SOMETHING_NEW', 'completed', 'Completed', 'COMPLETED ', 'SUCCEEDED', 'REJECTED', ''])(
    '%j ends nothing and leads nowhere',
    (word) => {
      expect(isTerminal(word)).toBe(false);
      for (const state of TASK_STATES) expect(mayFollow(word, state)).toBe(false);
    },
  );

  test('not even a word every object has', () => {
    expect(['constructor', '__proto__', 'toString'].some(isTerminal)).toBe(false);
  });

  test('an effect we do not know is a side effect', () => {
    expect(['none', 'read', 'write', 'unknown', 'teleport'].map(isSideEffect)).toEqual([
      false,
      false,
      true,
      true,
      true,
    ]);
  });
});

describe('task states', () => {
  test('follow each other as the protocol says', () => {
    expect(TASK_TRANSITIONS).toEqual({
      SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
      WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
      INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
      AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
      COMPLETED: [],
      FAILED: [],
      CANCELED: [],
    });
  });

  test('mayFollow says the same, for every pair', () => {
    const allowed = TASK_STATES.flatMap((from) =>
      TASK_STATES.filter((to) => mayFollow(from, to)).map((to) => `${from} ${to}`),
    );
    expect(allowed.toSorted()).toEqual([
      'AUTH_REQUIRED CANCELED',
      'AUTH_REQUIRED FAILED',
      'AUTH_REQUIRED WORKING',
      'INPUT_REQUIRED CANCELED',
      'INPUT_REQUIRED FAILED',
      'INPUT_REQUIRED WORKING',
      'SUBMITTED CANCELED',
      'SUBMITTED FAILED',
      'SUBMITTED WORKING',
      'WORKING AUTH_REQUIRED',
      'WORKING CANCELED',
      'WORKING COMPLETED',
      'WORKING FAILED',
      'WORKING INPUT_REQUIRED',
    ]);
  });

  test('end in three ways', () => {
    expect(TASK_STATES.filter(isTerminal)).toEqual(['COMPLETED', 'FAILED', 'CANCELED']);
  });
});

describe('events', () => {
  test('are named as the protocol names them', () => {
    const names = {
      user: 'message input_submitted tool_confirmation cancel_requested',
      agent: 'message reasoning_summary tool_use tool_result mcp_tool_use handoff memory_read memory_write',
      task: 'submitted started input_required auth_required completed failed canceled status_changed',
      session: 'created closed message_appended compacted truncated thread_forked thread_merged replayed',
      branch: 'created updated merged abandoned',
      artifact: 'created updated linked redacted',
      span: 'started updated completed failed',
      tool: 'requested approval_required approved denied completed failed',
      connector: 'delivery_received delivery_deduped normalized task_submitted failed',
      receipt: 'issued verified verification_failed',
      replay: 'started event_replayed completed failed',
    };
    const expected = Object.entries(names).flatMap(([group, words]) =>
      words.split(' ').map((word) => `${group}.${word}`),
    );
    expect(EVENT_KINDS).toEqual(expected);
    expect(expected).toHaveLength(58);
  });

  test('of our own carry our prefix and say why they exist', () => {
    for (const [name, why] of Object.entries(OWN_EVENT_KINDS)) {
      expect(name).toMatch(/^vendor\.tollbridge\.[a-z_]+$/);
      expect(why.length).toBeGreaterThan(20);
    }
  });

  test('have ids that sort as they happened', () => {
    expect(eventId(7)).toBe('evt_0000000000000007');
    expect(eventId(99) < eventId(100)).toBe(true);
    expect(position('evt_0000000000000100')).toBe(100);
    expect(['evt_7', 'evt_00000000000000007', 'task_1', '', 'evt_000000000000000x'].map(position)).toEqual(
      Array(5).fill(undefined),
    );
  });
});

describe('commands', () => {
  const message = { role: 'user', parts: [{ type: 'text', text: 'hi', visibility: 'public' }] };
  const action = { kind: 'tool', tool: 'read_note', arguments: {}, attributes: { tainted: true, tags: ['a'] } };

  /** A body that passes, then changes that do not, each with the member it is refused for. */
  const cases: Readonly<Record<CommandKind, readonly [object, ...(readonly [object, string])[]]>> = {
    'resource.create': [
      { object: 'memory', body: {} },
      [{ object: 'task' }, '/object'],
      [{ body: 'x' }, '/body'],
      [{ id: 'a b' }, '/id'],
    ],
    'resource.update': [
      { object: 'quota', id: 'quota_1', body: {} },
      [{ id: undefined }, '/id'],
      [{ object: 'event' }, '/object'],
    ],
    'resource.delete': [{ object: 'vault', id: 'vault_1' }, [{ id: '../x' }, '/id']],
    'session.create': [
      { workspace_id: 'workspace_1', persona_id: null, initial_messages: [message], metadata: {} },
      [{ workspace_id: undefined }, '/workspace_id'],
      [{ metadata: 'x' }, '/metadata'],
      [{ initial_messages: [{ role: 'user' }] }, '/initial_messages/0/parts'],
      [{ initial_messages: [{ ...message, role: 'boss' }] }, '/initial_messages/0/role'],
    ],
    'session.update': [{ session_id: 'session_1', summary: null }, [{ summary: 7 }, '/summary']],
    'session.close': [{ session_id: 'session_1' }, [{ session_id: '' }, '/session_id']],
    'session.fork': [{ session_id: 'session_1', at_event_id: null }, [{ at_event_id: 'a b' }, '/at_event_id']],
    'session.truncate': [
      { session_id: 'session_1', keep_first: 0 },
      [{ keep_first: -1 }, '/keep_first'],
      [{ keep_first: 1.5 }, '/keep_first'],
    ],
    'session.compact': [
      { session_id: 'session_1', summary: '', through_message_id: 'm_1' },
      [{ through_message_id: undefined }, '/through_message_id'],
    ],
    'message.append': [{ session_id: 'session_1', message }, [{ message: {} }, '/message/role']],
    'branch.create': [
      { session_id: 'session_1', kind: 'sandbox', base_ref: 'main' },
      [{ kind: 'twig' }, '/kind'],
      [{ base_ref: '' }, '/base_ref'],
    ],
    'branch.end': [{ branch_id: 'branch_1', as: 'merged' }, [{ as: 'burned' }, '/as']],
    'task.submit': [
      { session_id: 'session_1', input: message, agent: 'demo' },
      [{ input: 'hello' }, '/input'],
      [{ session_id: 7 }, '/session_id'],
      [{ session_id: undefined, session: {} }, '/session/workspace_id'],
      [{ agent: '' }, '/agent'],
    ],
    'task.cancel': [
      { task_id: 'task_1', reason: null, failure: { code: 'lost', message: 'gone' } },
      [{ reason: {} }, '/reason'],
      [{ failure: {} }, '/failure/code'],
    ],
    'task.resume': [{ task_id: 'task_1' }, [{ task_id: '' }, '/task_id']],
    'task.message': [{ task_id: 'task_1', kind: 'interrupt', message }, [{ kind: 'shout' }, '/kind']],
    'task.report': [
      { task_id: 'task_1', facts: [{ event: 'agent.message', payload: {} }], end: { state: 'COMPLETED' } },
      [{ facts: [{ event: '', payload: {} }] }, '/facts/0/event'],
      [{ end: { state: 'WORKING' } }, '/end/state'],
      [{ end: { state: 'FAILED', failure: { message: '' } } }, '/end/failure/code'],
    ],
    'task.replay': [
      { task_id: 'task_1', mode: 'with_overrides', override: { 'llm:1': { kind: 'time', value: 1 } } },
      [{ mode: 'backwards' }, '/mode'],
      [{ override: { 'llm:1': { kind: 'mood' } } }, '/override/llm:1/kind'],
      [{ override: { 'llm:1': { kind: 'time', sha256: HASH } } }, '/override/llm:1/sha256'],
    ],
    'action.propose': [
      { task_id: 'task_1', action, wait_ms: 0 },
      [{ wait_ms: -1 }, '/wait_ms'],
      [{ action: { kind: 'dance' } }, '/action/kind'],
      [{ action: { ...action, effect: 'boom' } }, '/action/effect'],
      [{ action: { ...action, cost: { usd: -1 } } }, '/action/cost/usd'],
      [{ action: { ...action, attributes: { a: { b: 1 } } } }, '/action/attributes/a'],
    ],
    'tool.call': [{ task_id: 'task_1', action }, [{ action: undefined }, '/action']],
    'ask.answer': [
      { ask_id: 'ask_1', approved: true },
      [{ approved: 'yes' }, '/approved'],
      [{ ask_id: undefined }, '/ask_id'],
    ],
    'artifact.register': [
      { kind: 'file', mime_type: 'text/plain', visibility: 'public', sha256: `sha256:${HASH}` },
      [{ kind: 'thing' }, '/kind'],
      [{ mime_type: '' }, '/mime_type'],
      [{ sha256: 'abc' }, '/sha256'],
      [{ visibility: 'loud' }, '/visibility'],
    ],
    'receipt.verify': [{ receipt_id: 'receipt_1', at_time: TIME }, [{ at_time: 'noon' }, '/at_time']],
    'binding.set': [
      { protocol: 'x', scope: '', wire_id: 'w', to: { object: 'task', id: 'task_1' } },
      [{ to: { object: 'task' } }, '/to/id'],
    ],
    passthrough: [
      { protocol: 'x', method: 'y/z', workspace_id: 'workspace_1', params: [1] },
      [{ method: '' }, '/method'],
    ],
  };

  test('are all looked at here', () => {
    expect(Object.keys(cases).toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
  });

  test.each(Object.entries(cases))('%s takes what is right and names what is wrong', (kind, [good, ...bad]) => {
    const schema: TSchema = COMMANDS[kind as CommandKind];
    const strange = { ...good, x_unknown: 1 };
    expect(check(schema, strange, kind)).toBe(strange);
    expect(bad.length).toBeGreaterThan(0);
    for (const [change, param] of bad) {
      const body = JSON.parse(JSON.stringify({ ...good, ...change }));
      const fault = faultOf(() => check(schema, body, kind));
      expect([fault.kind, fault.param]).toEqual(['invalid_request', param]);
    }
    for (const body of [null, [], 'x', 7]) expect(validator(schema)(body)).toBe(false);
  });

  test('an enumeration says what would have been right', () => {
    const fault = faultOf(() => check(COMMANDS['branch.end'], { branch_id: 'branch_1', as: 'burned' }, 'branch.end'));
    expect(fault.message).toBe('branch.end: /as must be one of merged, abandoned');
  });
});

describe('faults', () => {
  test('what was not planned is ours, and keeps its words to itself', () => {
    const cause = new Error('password is hunter2');
    const fault = asFault(cause);
    expect([fault.kind, fault.message, fault.cause]).toEqual([
      'internal',
      'something went wrong inside the bridge',
      cause,
    ]);
    expect(asFault(fault)).toBe(fault);
  });
});

describe('the protocol as published', () => {
  test.each(checks.map(({ name, run }) => [name, run] as const))('%s', async (_name, run) => {
    await expect((async () => run())()).resolves.toBeUndefined();
  });
});

function faultOf(act: () => unknown): Fault {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
  throw new Error('nothing was thrown');
}
