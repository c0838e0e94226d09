/** The sixteen resources: what they take, what they refuse, and what they keep of words nobody has met. */
import type { TSchema } from 'typebox';
import { describe, expect, test } from 'vitest';
import { Part, RESOURCES, type ResourceKind } from '../../../src/model/resources.ts';
import { check } from '../../../src/model/validate.ts';
import { isSideEffect, isTerminal, mayFollow, TASK_STATES } from '../../../src/model/words.ts';
import { faultOf, HASH, TIME } from '../../support/gateway/faults.ts';

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
  workspace: enveloped('workspace', { name: 'gateway', root: 'file:///srv/work', default_branch_id: null }),
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
  const locations: readonly [ResourceKind, string][] = [
    ['task', 'status'],
    ['session', 'state'],
    ['outcome', 'status'],
    ['connector', 'status'],
    ['persona', 'autonomy_tier'],
    ['persona', 'receipt_policy'],
    ['branch', 'kind'],
    ['message', 'role'],
    ['artifact', 'kind'],
    ['memory', 'scope'],
    ['quota', 'scope'],
  ];
  test.each(locations)('%s.%s keeps them', (kind, member) => {
    const strange = { ...EXAMPLES[kind], [member]: 'SOMETHING_NEW' };
    expect(check(RESOURCES[kind], strange, kind)).toHaveProperty(member, 'SOMETHING_NEW');
  });

  test('but for who may see something: a word that is misspelled would publish it', () => {
    for (const word of ['receipt-only', 'Internal', 'PUBLIC', '', 'private', null, 7]) {
      expect(() => check(RESOURCES.artifact, { ...EXAMPLES.artifact, visibility: word }, 'artifact')).toThrow(
        /visibility/,
      );
      expect(() => check(RESOURCES.memory, { ...EXAMPLES.memory, visibility: word }, 'memory')).toThrow(/visibility/);
      for (const type of ['text', 'json', 'something.new']) {
        const part = { type, text: 't', value: 1, visibility: word };
        expect(() => check(RESOURCES.part, part, 'part'), `${type} ${word}`).toThrow(/visibility/);
      }
    }
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
