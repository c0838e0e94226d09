/** Scopes: every command and every read needs its own, and no other will do. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { CommandKind } from '../../../../src/model/commands.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { type Belongings, everything, faultOf, file, hello, red } from '../../../support/gateway/two-tenants.ts';

let own: Belongings;

beforeEach(async () => {
  own = await everything();
});

describe('scopes', () => {
  const NEEDED: Readonly<Record<CommandKind, string>> = {
    'resource.create': 'resources:write',
    'resource.update': 'resources:write',
    'resource.delete': 'resources:write',
    'session.create': 'sessions:write',
    'session.update': 'sessions:write',
    'session.close': 'sessions:write',
    'session.fork': 'sessions:write',
    'session.truncate': 'sessions:write',
    'session.compact': 'sessions:write',
    'message.append': 'sessions:write',
    'branch.create': 'sessions:write',
    'branch.update': 'sessions:write',
    'branch.end': 'sessions:write',
    'task.submit': 'tasks:write',
    'task.cancel': 'tasks:write',
    'task.resume': 'tasks:write',
    'task.message': 'tasks:write',
    'task.report': 'tasks:write',
    'task.replay': 'tasks:write',
    'action.propose': 'tasks:write',
    'tool.call': 'tasks:write',
    'ask.answer': 'approvals:write',
    'artifact.register': 'artifacts:write',
    'artifact.link': 'artifacts:write',
    'artifact.redact': 'artifacts:write',
    'receipt.verify': 'receipts:read',
    'binding.set': 'sessions:write',
    passthrough: 'sessions:write',
  };
  const ALL = [
    ...new Set(Object.values(NEEDED)),
    'sessions:read',
    'tasks:read',
    'events:read',
    'artifacts:read',
    'memories:write',
    'personas:write',
  ];
  /** Someone else than the owner, so that only the scope is missing. */
  const holding = (...scopes: string[]): Actor => ({ ...red, id: 'sam', scopes: [...scopes, 'others:read'] });

  test('every command needs its own, and no other will do', async () => {
    const { t, ids } = own;
    const action = { kind: 'tool', tool: 'send' };
    const bodies: Readonly<Record<CommandKind, JsonObject>> = {
      'resource.create': { object: 'quota', body: { scope: 'workspace', limits: {} } },
      'resource.update': { object: 'quota', id: ids.quota!, body: {} },
      'resource.delete': { object: 'quota', id: ids.quota! },
      'session.create': { workspace_id: ids.workspace! },
      'session.update': { session_id: ids.session! },
      'session.close': { session_id: ids.session! },
      'session.fork': { session_id: ids.session! },
      'session.truncate': { session_id: ids.session!, keep_first: 0 },
      'session.compact': { session_id: ids.session!, summary: 's', through_message_id: ids.message! },
      'message.append': { session_id: ids.session!, message: hello as never },
      'branch.create': { session_id: ids.session!, kind: 'session', base_ref: 'main' },
      'branch.update': { branch_id: ids.branch! },
      'branch.end': { branch_id: ids.branch!, as: 'merged' },
      'task.submit': { session_id: ids.session!, input: {} },
      'task.cancel': { task_id: ids.task! },
      'task.resume': { task_id: ids.task! },
      'task.message': { task_id: ids.task!, kind: 'interrupt', message: hello as never },
      'task.report': { task_id: ids.task! },
      'task.replay': { task_id: ids.ended! },
      'action.propose': { task_id: ids.task!, action },
      'tool.call': { task_id: ids.task!, action },
      'ask.answer': { ask_id: ids.ask!, approved: true },
      'artifact.register': file,
      'artifact.link': { artifact_id: ids.artifact!, to: { object: 'session', id: ids.session! } },
      'artifact.redact': { artifact_id: ids.artifact! },
      'receipt.verify': { receipt_id: ids.receipt! },
      'binding.set': { protocol: 'p', scope: '', wire_id: 'w', to: { object: 'session', id: ids.session! } },
      passthrough: { protocol: 'p', method: 'm', workspace_id: ids.workspace! },
    };
    const before = (await t.all()).length;
    for (const [kind, body] of Object.entries(bodies) as [CommandKind, JsonObject][]) {
      const others = ALL.filter((scope) => scope !== NEEDED[kind]);
      // A member that belongs to another command opens nothing.
      for (const trick of [body, { ...body, ...(!kind.startsWith('resource.') && { object: 'memory' }) }]) {
        const fault = await t.refused(kind, trick, { actor: holding(...others) });
        expect(fault, kind).toMatchObject({
          kind: 'permission_denied',
          message: `sam does not have the scope ${NEEDED[kind]}`,
        });
      }
    }
    expect(await t.all()).toHaveLength(before);
  });

  test('a family, everything, or the kind of resource itself will do', async () => {
    const { t, ids } = own;
    const memory = {
      object: 'memory',
      body: { scope: 'session', owner_id: ids.session!, content: 1, provenance: {} },
    } as const;
    for (const scope of ['memories:write', 'memories:*', 'resources:write', 'resources:*', '*']) {
      expect(await t.send('resource.create', memory, { actor: holding(scope) })).toMatchObject({ repeated: false });
    }
    expect(
      await t.refused('resource.create', memory, { actor: holding('memories:read', 'personas:write') }),
    ).toMatchObject({ kind: 'permission_denied' });
  });

  test('every read needs its own', async () => {
    const { t, ids } = own;
    const reads: readonly [string, string][] = [
      ['session', 'sessions:read'],
      ['message', 'sessions:read'],
      ['branch', 'sessions:read'],
      ['task', 'tasks:read'],
      ['outcome', 'tasks:read'],
      ['ask', 'tasks:read'],
      ['event', 'events:read'],
      ['artifact', 'artifacts:read'],
      ['receipt', 'receipts:read'],
      ['workspace', 'workspaces:read'],
      ['persona', 'personas:read'],
      ['memory', 'memories:read'],
      ['quota', 'quotas:read'],
    ];
    for (const [object, scope] of reads) {
      const others = reads.map(([, other]) => other).filter((other) => other !== scope);
      const without = holding(...others, 'resources:write', 'tasks:write');
      const denied = { kind: 'permission_denied', message: `sam does not have the scope ${scope}` };
      expect(await faultOf(t.bridge.view(without, object, ids[object]!)), object).toMatchObject(denied);
      expect(await t.bridge.view(holding(scope), object, ids[object]!), object).toMatchObject({ id: ids[object] });
      if (object === 'event') continue;
      expect(await faultOf(t.bridge.list(without, { object })), object).toMatchObject(denied);
    }
    expect(await faultOf(t.bridge.bytes(holding('tasks:read'), ids.artifact!))).toMatchObject({
      kind: 'permission_denied',
    });
    const follow = async (actor: Actor) => {
      for await (const _ of t.bridge.follow(actor, { stream: { of: 'task', id: ids.task! } }, AbortSignal.timeout(1)))
        break;
    };
    expect(await faultOf(follow(holding('tasks:read')))).toMatchObject({ kind: 'permission_denied' });
  });

  test('what is for receipts only needs the scope for receipts', async () => {
    const { t, ids } = own;
    const body = { ...file, visibility: 'receipt_only', workspace_id: ids.workspace! } as const;
    const { resource } = await t.send('artifact.register', body, { actor: red, bytes: Buffer.from('x') });
    expect(await faultOf(t.bridge.bytes(holding('artifacts:read'), resource.id))).toMatchObject({
      kind: 'permission_denied',
    });
    expect(Buffer.from(await t.bridge.bytes(holding('artifacts:read', 'receipts:read'), resource.id)).toString()).toBe(
      'x',
    );
  });

  test('a name that is on every object is a name like any other', async () => {
    const { t } = own;
    for (const object of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      expect(await faultOf(t.bridge.view(holding('tasks:read'), object, 'x')), object).toMatchObject({
        kind: 'permission_denied',
      });
      expect(await faultOf(t.bridge.view(red, object, 'x')), object).toMatchObject({ kind: 'not_found' });
      expect(await t.refused(object as CommandKind, {}, { actor: red }), object).toMatchObject({
        kind: 'invalid_request',
      });
    }
  });
});
