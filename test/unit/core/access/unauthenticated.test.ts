/**
 * To unauthenticated callers what is hidden is absent, in the same words, whichever way they come; and what core keeps for itself is
 * for nobody.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import { COMMANDS, type CommandKind } from '../../../../src/model/commands.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import {
  type Belongings,
  blue,
  everything,
  faultOf,
  file,
  hello,
  red,
  sameWords,
} from '../../../support/gateway/two-tenants.ts';
import { PERSONA } from '../../../support/policy/personas.ts';

let own: Belongings;

beforeEach(async () => {
  own = await everything();
});

/** Someone of another tenant, and someone of the same one who was given another workspace only. */
const UNAUTHENTICATED: readonly [string, Actor][] = [
  ['another tenant', blue],
  ['an installation without tenants', { id: 'ada', kind: 'person', scopes: ['*'] }],
  ['another workspace', { ...red, id: 'rob', workspaces: ['workspace_elsewhere'] }],
];

describe.each(UNAUTHENTICATED)('to %s', (what, outsider) => {
  const inWorkspace = [
    'workspace',
    'session',
    'task',
    'ask',
    'message',
    'branch',
    'receipt',
    'artifact',
    'outcome',
    'event',
    'memory',
    'connector',
  ];
  // What a tenant declares for all of its workspaces is seen in each of them.
  const hidden = what === 'another workspace' ? inWorkspace : [...inWorkspace, 'persona', 'quota', 'skill', 'vault'];

  test('every object is absent', async () => {
    const { t, ids } = own;
    for (const object of hidden) {
      const id = ids[object]!;
      const none = object === 'event' ? 'evt_9999999999999999' : `${object}_none`;
      sameWords(
        await faultOf(t.bridge.view(outsider, object, id)),
        await faultOf(t.bridge.view(outsider, object, none)),
        id,
        none,
      );
      if (object === 'event') continue;
      const listed = await t.bridge.list(outsider, { object });
      expect(
        listed.data.map((row) => row.id),
        object,
      ).not.toContain(id);
    }
    const artifact = ids.artifact!;
    sameWords(
      await faultOf(t.bridge.bytes(outsider, artifact)),
      await faultOf(t.bridge.bytes(outsider, 'artifact_none')),
      artifact,
      'artifact_none',
    );
  });

  test('every command about them finds nothing and writes nothing', async () => {
    const { t, ids } = own;
    const other = await t.room({ actor: { ...outsider, workspaces: undefined } as unknown as Actor });
    const mine = what === 'another workspace' ? { ...outsider, workspaces: [other.workspace] } : outsider;
    const action = { kind: 'tool', tool: 'send' } as const;
    /** Each names one hidden thing; the second argument is what stands in its place. */
    const attempts: readonly [CommandKind, string, (id: string) => JsonObject][] = [
      ['resource.update', 'workspace', (id) => ({ object: 'workspace', id, body: { name: 'taken' } })],
      ['resource.delete', 'workspace', (id) => ({ object: 'workspace', id })],
      ['resource.update', 'memory', (id) => ({ object: 'memory', id, body: { content: 'taken' } })],
      ['resource.delete', 'connector', (id) => ({ object: 'connector', id })],
      [
        'resource.create',
        'workspace',
        (id) => ({ object: 'vault', body: { workspace_id: id, provider: 'p', capabilities: [] } }),
      ],
      [
        'resource.create',
        'workspace',
        (id) => ({ object: 'memory', body: { scope: 'workspace', owner_id: id, content: 1, provenance: {} } }),
      ],
      [
        'resource.create',
        'session',
        (id) => ({ object: 'memory', body: { scope: 'session', owner_id: id, content: 1, provenance: {} } }),
      ],
      [
        'resource.create',
        'session',
        (id) => ({
          object: 'connector',
          body: { workspace_id: other.workspace, provider: 'p', event_kinds: [], target_session_id: id },
        }),
      ],
      [
        'resource.update',
        'branch',
        (id) => ({ object: 'workspace', id: other.workspace, body: { default_branch_id: id } }),
      ],
      ['session.create', 'workspace', (id) => ({ workspace_id: id })],
      ['session.create', 'memory', (id) => ({ workspace_id: other.workspace, memory_ids: [id] })],
      ['session.update', 'session', (id) => ({ session_id: id, summary: 's' })],
      ['session.close', 'session', (id) => ({ session_id: id })],
      ['session.fork', 'session', (id) => ({ session_id: id })],
      ['session.truncate', 'session', (id) => ({ session_id: id, keep_first: 0 })],
      ['session.compact', 'session', (id) => ({ session_id: id, summary: 's', through_message_id: ids.message! })],
      ['session.compact', 'message', (id) => ({ session_id: other.session, summary: 's', through_message_id: id })],
      ['message.append', 'session', (id) => ({ session_id: id, message: hello })],
      ['branch.create', 'session', (id) => ({ session_id: id, kind: 'session', base_ref: 'main' })],
      [
        'branch.create',
        'branch',
        (id) => ({ session_id: other.session, kind: 'session', base_ref: 'main', parent_branch_id: id }),
      ],
      [
        'branch.create',
        'task',
        (id) => ({ session_id: other.session, kind: 'session', base_ref: 'main', task_id: id }),
      ],
      ['branch.update', 'branch', (id) => ({ branch_id: id, worktree_uri: 'x' })],
      ['branch.end', 'branch', (id) => ({ branch_id: id, as: 'merged' })],
      ['session.fork', 'branch', (id) => ({ session_id: other.session, branch_id: id })],
      ['task.submit', 'session', (id) => ({ session_id: id, input: {} })],
      ['task.submit', 'branch', (id) => ({ session_id: other.session, input: {}, branch_id: id, agent: 'none' })],
      ['task.submit', 'task', (id) => ({ session_id: other.session, input: {}, parent_task_id: id, agent: 'none' })],
      ['task.cancel', 'task', (id) => ({ task_id: id })],
      ['task.resume', 'task', (id) => ({ task_id: id })],
      ['task.message', 'task', (id) => ({ task_id: id, kind: 'interrupt', message: hello })],
      ['task.report', 'task', (id) => ({ task_id: id, end: { state: 'COMPLETED' } })],
      ['task.replay', 'ended', (id) => ({ task_id: id })],
      ['action.propose', 'task', (id) => ({ task_id: id, action })],
      ['tool.call', 'task', (id) => ({ task_id: id, action })],
      ['ask.answer', 'ask', (id) => ({ ask_id: id, approved: true })],
      ['artifact.register', 'workspace', (id) => ({ ...file, workspace_id: id })],
      ['artifact.register', 'session', (id) => ({ ...file, session_id: id })],
      ['artifact.register', 'task', (id) => ({ ...file, task_id: id })],
      ['artifact.link', 'artifact', (id) => ({ artifact_id: id, to: { object: 'session', id: other.session } })],
      ['artifact.redact', 'artifact', (id) => ({ artifact_id: id })],
      ['receipt.verify', 'receipt', (id) => ({ receipt_id: id })],
      ['binding.set', 'task', (id) => ({ protocol: 'p', scope: '', wire_id: 'w', to: { object: 'task', id } })],
      ['passthrough', 'workspace', (id) => ({ protocol: 'p', method: 'm', workspace_id: id })],
      [
        'passthrough',
        'session',
        (id) => ({ protocol: 'p', method: 'm', workspace_id: other.workspace, session_id: id }),
      ],
      ['passthrough', 'task', (id) => ({ protocol: 'p', method: 'm', workspace_id: other.workspace, task_id: id })],
      ...(what === 'another workspace'
        ? []
        : ([
            ['resource.update', 'persona', (id) => ({ object: 'persona', id, body: { autonomy_tier: 'act_auto' } })],
            ['resource.delete', 'quota', (id) => ({ object: 'quota', id })],
            ['resource.create', 'quota', (id) => ({ object: 'persona', body: { ...PERSONA, quota_id: id } })],
            ['session.create', 'persona', (id) => ({ workspace_id: other.workspace, persona_id: id })],
            ['session.create', 'vault', (id) => ({ workspace_id: other.workspace, vault_ids: [id] })],
            ['session.create', 'skill', (id) => ({ workspace_id: other.workspace, skill_ids: [id] })],
            ['task.submit', 'persona', (id) => ({ session_id: other.session, input: {}, persona_id: id })],
          ] satisfies [CommandKind, string, (id: string) => JsonObject][])),
    ];
    const named = new Set(attempts.map(([kind]) => kind));
    expect(Object.keys(COMMANDS).filter((kind) => !named.has(kind as CommandKind))).toEqual([]);

    const before = (await t.all()).length;
    for (const [kind, object, body] of attempts) {
      const id = ids[object]!;
      const none = `${object}_none`;
      const hiddenFault = await t.refused(kind, body(id), { actor: mine });
      const absentFault = await t.refused(kind, body(none), { actor: mine });
      expect(hiddenFault.kind, `${kind} ${object}`).toBe('not_found');
      sameWords(hiddenFault, absentFault, id, none);
    }
    expect(await t.all()).toHaveLength(before);
  });

  test('streams show nothing of them', async () => {
    const { t, ids } = own;
    for (const stream of ['workspace', 'session', 'task'] as const) {
      const none = `${stream}_none`;
      const read = async (id: string) => {
        for await (const event of t.bridge.events(outsider, { stream: { of: stream, id } }))
          expect(event).toBe(undefined);
      };
      sameWords(await faultOf(read(ids[stream]!)), await faultOf(read(none)), ids[stream]!, none);
    }
    for await (const event of t.bridge.events(outsider, {
      stream: { of: 'resource', object: 'task', id: ids.task! },
    })) {
      expect(event).toBe(undefined);
    }
    for await (const event of t.bridge.events(outsider, { stream: { of: 'all' } })) expect(event).toBe(undefined);
  });
});

describe('rows that are private to core are hidden from every caller', () => {
  const PRIVATE = ['run', 'tally', 'binding'];

  test.each(PRIVATE)('%s', async (object) => {
    const { t, ids } = own;
    const rows = await t.runtime.store.list({ object });
    const id = rows[0]?.id ?? ids.session!;
    expect(await faultOf(t.bridge.view(red, object, id))).toMatchObject({
      kind: 'not_found',
      message: `no ${object} ${id}`,
    });
    expect(await faultOf(t.bridge.list(red, { object }))).toMatchObject({ kind: 'not_found' });
    const system: Actor = { id: 'door', kind: 'system', scopes: ['*'] };
    for (const actor of [red, system]) {
      const bind = {
        protocol: 'p',
        scope: '',
        wire_id: 'w',
        to: { object, id: /^[\w.-]+$/.test(id) ? id : ids.session! },
      };
      expect(await t.refused('binding.set', bind, { actor })).toMatchObject({ kind: 'not_found' });
    }
  });
});
