/** Projections are nothing but the log: made again from it, every row comes out as it stood. */

import { join } from 'node:path';
import fc from 'fast-check';
import Database from 'libsql';
import { describe, expect, test } from 'vitest';
import { projector } from '../../../../src/core/events/projector.ts';
import type { EventDraft } from '../../../../src/model/events.ts';
import type { Row } from '../../../../src/ports/index.ts';
import {
  freshDir,
  openTestGateway,
  pages,
  REAL_TIME,
  says,
  type TestGateway,
} from '../../../support/gateway/test-gateway.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { MIXED } from '../../../support/policy/rules.ts';
import { patient, scripted, text, toolbox } from '../../../support/tasks/script.ts';

/** Every row there is, in the order lists give them. */
async function everything(gateway: TestGateway): Promise<Record<string, readonly Row[]>> {
  const db = new Database(join(gateway.dir, 'log.db'));
  const objects = db.prepare('SELECT DISTINCT object FROM projections ORDER BY object').all() as { object: string }[];
  db.close();
  const rows: Record<string, readonly Row[]> = {};
  for (const { object } of objects) {
    rows[object] = await pages((after) => gateway.runtime.store.list<Row>({ object, limit: 200, ...after }));
  }
  return rows;
}

async function expectRebuilt(gateway: TestGateway): Promise<Record<string, readonly Row[]>> {
  const { store } = gateway.runtime;
  for (;;) {
    const tip = await store.tip({ of: 'all' });
    const before = await everything(gateway);
    expect(await store.compareRows()).not.toHaveProperty('fault');
    await store.rebuild();
    const after = await everything(gateway);
    if ((await store.tip({ of: 'all' })) !== tip) continue; // work went on meanwhile: look again when it rests
    expect(after).toEqual(before);
    return before;
  }
}

const agents = () => [
  scripted('says', async ({ sink }) => {
    await sink.emit(text('one', { id: undefined }));
    await sink.emit({ event: 'vendor.tollbridge.plan', payload: { entries: [{ step: 1 }] } });
    await sink.emit({ event: 'vendor.tollbridge.usage', payload: { usd_micros: 3 } });
    await sink.artifact({ kind: 'file', mime_type: 'text/plain', bytes: Buffer.from('x') });
    await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c' });
    await sink.emit(text('one again'));
  }),
  scripted('asks', async ({ sink }) => {
    await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c' });
    await sink.ask({ kind: 'input', key: 'k', question: '?' });
  }),
  scripted('fails', async () => {
    throw new Error('no');
  }),
  scripted('waits', patient),
];

/** One random wish after the other. Some make sense, some are refused; all of them are real. */
async function live(gateway: TestGateway, wishes: readonly number[]): Promise<void> {
  const { store } = gateway.runtime;
  const made: Record<string, string[]> = {};
  const pick = (object: string, wish: number) => made[object]?.[wish % made[object].length];
  const keep = (object: string, id: string) => {
    made[object] = [...(made[object] ?? []), id];
    return id;
  };
  const persona = (tier: string) => ({
    object: 'persona' as const,
    body: {
      name: tier,
      version: '1',
      entry_workflow: 'says',
      description: '',
      autonomy_tier: tier,
      receipt_policy: 'optional',
    },
  });
  const verbs: ((wish: number) => Promise<unknown>)[] = [
    async () => {
      const limits = { tool_calls: 50, tasks: 200, usd_micros: 100 };
      const { resource } = await gateway.send('resource.create', {
        object: 'quota',
        body: { scope: 'workspace', limits },
      });
      keep('quota', resource.id);
      keep('workspace', await gateway.workspace({ quota_id: resource.id }));
    },
    async (wish) => {
      const { resource } = await gateway.send('resource.create', persona(wish % 2 ? 'act_auto' : 'suggest'));
      keep('persona', resource.id);
    },
    async (wish) => {
      const workspace_id = pick('workspace', wish) ?? keep('workspace', await gateway.workspace());
      const initial_messages = wish % 3 ? [] : [says('hello'), says('hi', 'assistant')];
      keep('session', (await gateway.send('session.create', { workspace_id, initial_messages })).resource.id);
    },
    async (wish) => gateway.send('message.append', { session_id: pick('session', wish)!, message: says(`m${wish}`) }),
    async (wish) => {
      const agent = ['says', 'asks', 'fails', 'waits', 'none'][wish % 5]!;
      const persona_id = wish % 4 ? undefined : pick('persona', wish);
      const task = await gateway.submit(pick('session', wish)!, { agent, ...(persona_id && { persona_id }) });
      keep('task', task.id);
      if (agent === 'none') keep('outside', task.id);
    },
    async (wish) => gateway.send('task.cancel', { task_id: pick('task', wish)! }),
    async (wish) =>
      gateway.send('task.message', { task_id: pick('task', wish)!, kind: 'interrupt', message: says('hurry') }),
    async (wish) =>
      gateway.send('task.report', {
        task_id: pick('outside', wish)!,
        facts: [
          text('from afar'),
          { event: 'artifact.created', payload: { artifact: { kind: 'log', mime_type: 'x/y' } } },
        ],
        ...(wish % 2 && { end: { state: 'COMPLETED' as const } }),
      }),
    async (wish) => {
      const open = await gateway.openAsks();
      const ask = open[wish % open.length]!;
      await gateway.answer(ask.id, ask.kind === 'input' ? { value: wish } : { approved: wish % 3 > 0 });
    },
    async (wish) => keep('task', (await gateway.send('task.replay', { task_id: pick('task', wish)! })).resource.id),
    async (wish) =>
      keep('session', (await gateway.send('session.fork', { session_id: pick('session', wish)! })).resource.id),
    async (wish) => gateway.send('session.truncate', { session_id: pick('session', wish)!, keep_first: wish % 4 }),
    async (wish) => {
      const [message] = await gateway.messages(pick('session', wish)!);
      const session_id = pick('session', wish)!;
      await gateway.send('session.compact', { session_id, summary: 's', through_message_id: message!.id });
    },
    async (wish) => gateway.send('session.update', { session_id: pick('session', wish)!, summary: `s${wish}` }),
    async (wish) => (wish % 3 ? undefined : gateway.send('session.close', { session_id: pick('session', wish)! })),
    async (wish) => {
      const body = { session_id: pick('session', wish)!, kind: 'session' as const, base_ref: 'main' };
      keep('branch', (await gateway.send('branch.create', body)).resource.id);
    },
    async (wish) =>
      gateway.send('branch.end', { branch_id: pick('branch', wish)!, as: wish % 2 ? 'merged' : 'abandoned' }),
    async (wish) => {
      const owner_id = pick('workspace', wish)!;
      const body = { scope: 'workspace', owner_id, content: `c${wish}`, provenance: {} };
      keep('memory', (await gateway.send('resource.create', { object: 'memory', body })).resource.id);
    },
    async (wish) =>
      gateway.send('resource.update', { object: 'memory', id: pick('memory', wish)!, body: { content: 'new' } }),
    async (wish) => gateway.send('resource.delete', { object: 'memory', id: pick('memory', wish)! }),
    async (wish) => {
      const about = { kind: 'file' as const, mime_type: 'text/plain', visibility: 'public' as const };
      const session_id = pick('session', wish)!;
      await gateway.send('artifact.register', { ...about, session_id }, { bytes: Buffer.from(`b${wish % 5}`) });
    },
    async (wish) => {
      const to = { object: 'session', id: pick('session', wish)! };
      await gateway.send('binding.set', { protocol: 'acp', scope: '', wire_id: `w${wish}`, to });
    },
    async (wish) => {
      const [stored] = await store.receipts({ after: wish % 7, limit: 1 });
      await gateway.send('receipt.verify', { receipt_id: stored!.receipt.receipt_id });
    },
  ];
  for (const wish of wishes) {
    const verb = verbs[wish % verbs.length]!;
    // Not everything can be done to what there is just then; that is part of the mix.
    await verb(Math.floor(wish / verbs.length)).catch(() => {});
  }
}

const settings = { graceMs: 20, inlineLimit: 400 };
const box = () => toolbox('box', { write: undefined, ask: undefined });

describe('rebuilding', () => {
  needsFile();

  test('after a long life of every command, with work still open', { timeout: 240_000 }, async () => {
    const met = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(1_000_000), { minLength: 150, maxLength: 260 }), async (wishes) => {
        const gateway = await openTestGateway({
          ...REAL_TIME,
          rules: MIXED,
          agents: agents(),
          tools: [box()],
          settings,
        });
        // A start that is worth something, then whatever comes.
        await live(gateway, [0, 1, 2, 2 + 23 * 3, ...wishes.slice(0, 120)]);
        const half = await expectRebuilt(gateway);
        await live(gateway, [0, 2, 2, ...wishes]);
        await expectRebuilt(gateway);
        // Also from what is left when the oldest part has been forgotten.
        await gateway.runtime.store.retain('9999-01-01T00:00:00.000Z');
        await expectRebuilt(gateway);
        const rows = await everything(gateway);
        for (const object of [...Object.keys(rows), ...Object.keys(half)]) met.add(object);
        await gateway.close();
      }),
      { numRuns: 4, endOnFailure: true },
    );
    for (const object of ['artifact', 'ask', 'binding', 'branch', 'memory', 'message', 'outcome', 'persona']) {
      expect(met).toContain(object);
    }
    for (const object of ['quota', 'run', 'session', 'tally', 'task', 'workspace']) expect(met).toContain(object);
  });

  test('two gateways write, either rebuilds, and both go on from there', async () => {
    const dir = await freshDir();
    const open = () => openTestGateway({ ...REAL_TIME, dir, rules: MIXED, agents: agents(), tools: [box()], settings });
    const [one, two] = [await open(), await open()];
    const session = await one.session();
    await Promise.all([one, two].map((gateway) => gateway.submit(session, { agent: 'says' })));
    await Promise.all([one.runtime.idle(), two.runtime.idle()]);
    await expectRebuilt(one);
    await two.send('message.append', { session_id: session, message: says('more') });
    await expectRebuilt(two);
    const { transcript } = await one.view<Row & { transcript: object }>('session', session);
    expect(transcript).toMatchObject({ message_count: (await one.messages(session)).length });
  });
});

describe('what the projector looks at', () => {
  test('is named beforehand for every kind of event, so that any store can fetch it', () => {
    // A draft of each kind with everything a draft can point to: asking for more than was named would throw.
    const payload = {
      task: { id: 't', session_id: 's', workspace_id: 'w', status: 'WORKING', metadata: {} },
      to: 'COMPLETED',
      agent: 'one',
      lane: true,
      outcome: { id: 'o', object: 'outcome' },
      message: { id: 'm', parts: [], role: 'user' },
      session: { id: 's', object: 'session' },
      ask: { id: 'a', kind: 'input', digest: 'd', state: 'open', metadata: {} },
      ask_id: 'a',
      quota_id: 'q',
      artifact: { id: 'f' },
      branch: { id: 'b', object: 'branch' },
      resource: { id: 'r', object: 'memory' },
      entries: [],
      removed: ['m'],
    };
    for (const event of [
      'session.created',
      'session.closed',
      'session.truncated',
      'session.compacted',
      'session.message_appended',
      'user.message',
      'agent.message',
      'user.cancel_requested',
      'task.submitted',
      'task.started',
      'task.status_changed',
      'task.input_required',
      'task.auth_required',
      'task.completed',
      'task.failed',
      'task.canceled',
      'artifact.created',
      'branch.created',
      'vendor.tollbridge.ask_opened',
      'vendor.tollbridge.ask_closed',
      'vendor.tollbridge.ask_used',
      'vendor.tollbridge.plan',
      'vendor.tollbridge.quota_used',
      'vendor.tollbridge.recovered',
      'vendor.tollbridge.resource_created',
      'vendor.tollbridge.resource_deleted',
    ]) {
      const draft = {
        event,
        resource: { object: 'task', id: 't' },
        task_id: 't',
        session_id: 's',
        workspace_id: 'w',
        payload,
      } as unknown as EventDraft;
      const at = '2026-01-01T00:00:00.000Z';
      const whole = {
        ...draft,
        id: 'evt_1',
        object: 'event',
        created_at: at,
        updated_at: at,
        sequence: 1,
        metadata: {},
      };
      const named = projector.touches(draft);
      const asked: string[] = [];
      projector.apply(
        whole as never,
        ((object: string, id: string) => {
          asked.push(`${object} ${id}`);
          return undefined;
        }) as never,
      );
      expect(
        named.map(({ object, id }) => `${object} ${id}`),
        event,
      ).toEqual(expect.arrayContaining(asked));
    }
  });

  test('what a replay repeats changes nothing but the replay itself', () => {
    const at = '2026-01-01T00:00:00.000Z';
    const base = { id: 'evt_1', object: 'event', created_at: at, updated_at: at, sequence: 1, metadata: {} };
    const apply = (event: string, payload: object) =>
      projector.apply(
        {
          ...base,
          event,
          payload,
          resource: { object: 'task', id: 't' },
          task_id: 't',
          session_id: 's',
          replayed: true,
        } as never,
        () => undefined,
      );
    expect(apply('agent.message', { message: { id: 'm', parts: [] } })).toEqual([]);
    expect(apply('artifact.created', { artifact: { id: 'f' } })).toEqual([]);
    expect(apply('vendor.tollbridge.quota_used', { quota_id: 'q', usage: {} })).toEqual([]);
    expect(apply('vendor.tollbridge.plan', { entries: [] })).toEqual([]);
    expect(apply('vendor.tollbridge.ask_opened', { ask: { id: 'a', metadata: {} } })).toHaveLength(1);
  });

  test('an event can only make what it is about', () => {
    const at = '2026-01-01T00:00:00.000Z';
    const base = { id: 'evt_1', object: 'event', created_at: at, updated_at: at, sequence: 1, metadata: {} };
    const forged = { id: 'p', object: 'persona', autonomy_tier: 'act_auto', parts: [] };
    const apply = (event: string, payload: object) =>
      projector.apply(
        { ...base, event, payload, resource: { object: 'task', id: 't' }, session_id: 's' } as never,
        () => undefined,
      );
    const objects = [
      ...apply('agent.message', { message: forged }),
      ...apply('artifact.created', { artifact: forged }),
    ].map((change) => ('put' in change ? change.put.object : ''));
    expect(objects.toSorted()).toEqual(['artifact', 'message', 'tally']);
  });
});
