/** What a replay depends on: where it may begin, and that it says what is missing instead of making it up. */

import { join } from 'node:path';
import Database from 'libsql';
import { describe, expect, test } from 'vitest';
import { Receipt } from '../../../../src/model/receipt.ts';
import type { Task } from '../../../../src/model/resources.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { check } from '../../../../src/model/validate.ts';
import type { Store } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { kinds, openTestGateway, REAL_TIME, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { openMortal, settings } from '../../../support/tasks/killable-gateway.ts';
import { everything, play, RULES, replay, sayYes, tools } from '../../../support/tasks/replay.ts';
import { sameText } from '../../../support/tasks/same-receipt.ts';
import { scripted, text } from '../../../support/tasks/script.ts';

needsFile();

describe('from a checkpoint', () => {
  test('by its id or by any event: what came before is restored, not lived through', async () => {
    const { gateway, task, box } = await play(everything);
    const events = await gateway.events(task.id);
    const ran = box.ran.length;
    const at = events.findIndex(({ event }) => event === 'vendor.tollbridge.checkpoint');
    const half = events[at]!;
    const named = await replay(gateway, task.id, { mode: 'from_checkpoint', checkpoint_id: 'half' });
    const pointed = await replay(gateway, task.id, { mode: 'from_checkpoint', checkpoint_event_id: half.id });
    for (const again of [named, pointed]) {
      expect(again.status).toBe('COMPLETED');
      const reported = await gateway.events(again.id);
      const restored = reported.filter(
        ({ event, payload }) => event === 'replay.event_replayed' && 'restored' in payload,
      );
      expect(restored).toMatchObject([
        { replayed: true, payload: { restored: at + 1, through: half.id }, replay: { original_event_id: half.id } },
      ]);
      // Whatever stands for a recorded event says for which.
      const unnamed = reported.filter((event) => event.replayed && !event.replay?.original_event_id);
      expect(kinds(unnamed)).toEqual([]);
      const lived = reported
        .flatMap(({ replay: mark }) => mark?.original_event_id ?? [])
        .filter((id) => id !== half.id);
      expect(Math.min(...lived.map((id) => events.findIndex((event) => event.id === id)))).toBeGreaterThan(at);
    }
    expect(sameText(await gateway.receipt(named.id))).toBe(sameText(await gateway.receipt(pointed.id)));
    expect(box.ran).toHaveLength(ran);

    // From the middle of anything: each event of the record is a place to start.
    for (const event of events.filter((_, index) => index % 7 === 0)) {
      const again = await replay(gateway, task.id, { mode: 'from_checkpoint', checkpoint_event_id: event.id });
      expect(again, `${event.event} ${event.id}`).toMatchObject({ status: 'COMPLETED' });
    }
    expect(await gateway.openAsks()).toEqual([]);
  });
});

describe('what a replay depends on', () => {
  function edit(dir: string, ...statements: [string, unknown[]][]): void {
    const db = new Database(join(dir, 'log.db'));
    for (const [sql, params] of statements) db.prepare(sql).run(...(params as []));
    db.close();
  }
  /** The task has failed and names the dependency; so do the event and the receipt. */
  async function expectMissing(
    gateway: TestGateway,
    task: Task,
    dependency: JsonObject,
    at: JsonObject,
  ): Promise<void> {
    const again = await replay(gateway, task.id);
    expect(again).toMatchObject({
      status: 'FAILED',
      failure: { code: 'replay_dependency_unavailable', details: { dependency, at, mode: 'exact' } },
    });
    const reported = await gateway.events(again.id);
    expect(kinds(reported)).toEqual([
      'task.submitted',
      'task.started',
      'replay.started',
      'replay.failed',
      'receipt.issued',
      'task.failed',
    ]);
    expect(reported[3]!.payload).toEqual(again.failure);
    const { replay_input } = await gateway.receipt(again.id);
    expect(replay_input.determinism).toBe('unavailable');
    expect(replay_input.unavailable_reason).toContain(String(dependency.id));
  }

  test('bytes that are gone', async () => {
    const { gateway, task } = await play(everything);
    const events = await gateway.events(task.id);
    const index = events.findIndex(({ event }) => event === 'artifact.created');
    const { id, sha256 } = events[index]!.payload.artifact as { id: string; sha256: string };
    edit(gateway.dir, ['DELETE FROM blobs WHERE sha256 = ?', [sha256]]);
    await expectMissing(gateway, task, { kind: 'artifact', id }, { event_id: events[index]!.id, index });
  });

  test('a long answer that is gone, unless an override gives another', async () => {
    const { gateway, task } = await play(everything, { abilities: { reruns: true } });
    const events = await gateway.events(task.id);
    const index = events.findIndex(
      ({ event, payload }) => event === 'tool.completed' && payload.tool_call_id === 'long',
    );
    const { artifact_id, sha256 } = events[index]!.payload.output as { artifact_id: string; sha256: string };
    edit(gateway.dir, ['DELETE FROM blobs WHERE sha256 = ?', [sha256]]);
    await expectMissing(gateway, task, { kind: 'artifact', id: artifact_id }, { event_id: events[index]!.id, index });
    const override = { 'mcp:box:long': { kind: 'mcp_tool_return' as const, value: 'short' } };
    expect(await replay(gateway, task.id, { mode: 'with_overrides', override })).toMatchObject({
      status: 'COMPLETED',
      failure: null,
    });
  });

  test('a memory that is no longer what it was', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [
        scripted('one', async ({ sink, work }) => {
          const { memory_id, as_of } = work.task.metadata as { memory_id: string; as_of: string };
          await sink.emit({ event: 'agent.memory_read', payload: { memory_id, as_of } });
          await sink.emit({
            event: 'agent.memory_read',
            payload: { memory_id: 'inline', content: 'kept with the event' },
          });
        }),
      ],
    });
    const workspace_id = await gateway.workspace();
    const body = { scope: 'workspace', owner_id: workspace_id, content: 'tea', provenance: {} };
    const memory = await gateway.send('resource.create', { object: 'memory', body });
    const metadata = { memory_id: memory.resource.id, as_of: memory.resource.updated_at };
    const { id } = await gateway.submit(await gateway.session({ workspace_id }), { metadata });
    const task = await gateway.until(id);
    expect((await replay(gateway, id)).status).toBe('COMPLETED');
    await eventually(() => new Date().toISOString() > memory.resource.updated_at, 'the clock to move');
    await gateway.send('resource.update', { object: 'memory', id: memory.resource.id, body: { content: 'coffee' } });
    const events = await gateway.events(id);
    const index = events.findIndex(({ event }) => event === 'agent.memory_read');
    await expectMissing(
      gateway,
      task,
      { kind: 'memory', id: memory.resource.id },
      { event_id: events[index]!.id, index },
    );
    // Only someone who says so gets it as it is now.
    const refreshed = await replay(gateway, id, { metadata: { allow_refresh: ['memory'] } });
    expect(refreshed.status).toBe('COMPLETED');
    expect((await gateway.receipt(refreshed.id)).replay_input.determinism).toBe('best_effort');
    await gateway.send('resource.delete', { object: 'memory', id: memory.resource.id });
    await expectMissing(
      gateway,
      task,
      { kind: 'memory', id: memory.resource.id },
      { event_id: events[index]!.id, index },
    );
  });

  test('the receipt of the source', async () => {
    const { gateway, task } = await play(async ({ sink }) => sink.emit(text('x')));
    const events = await gateway.events(task.id);
    edit(gateway.dir, ['DELETE FROM receipts WHERE id = ?', [task.receipt_id]]);
    await expectMissing(
      gateway,
      task,
      { kind: 'receipt', id: task.receipt_id! },
      { event_id: events.at(-1)!.id, index: events.length - 1 },
    );
  });

  test('an event in the middle of the record', async () => {
    const { gateway, task } = await play(async ({ sink }) => sink.emit(text('x')));
    const events = await gateway.events(task.id);
    edit(gateway.dir, ['DELETE FROM events WHERE position = ?', [Number(events[3]!.id.slice(4))]]);
    await expectMissing(gateway, task, { kind: 'event', id: `${task.id}#4` }, { event_id: events[4]!.id, index: 3 });
  });

  test('events that are no longer kept', async () => {
    const { gateway, task } = await play(async ({ sink }) => sink.emit(text('x')));
    const [first] = await gateway.events(task.id);
    await gateway.runtime.store.retain('9999-01-01T00:00:00.000Z');
    expect(await refusalOf(replay(gateway, task.id))).toMatchObject({ kind: 'cursor_expired' });
    await expect(replay(gateway, task.id)).rejects.toMatchObject({
      details: {
        dependency: { kind: 'event', id: first?.id },
        first_missing: { id: first?.id, event: 'task.submitted', sequence: 1 },
        first_unavailable: first?.id,
      },
    });
    expect(await gateway.runtime.store.firstMissing({ of: 'task', id: task.id })).toMatchObject({ first: first?.id });
  });

  test('the end of the record', async () => {
    const { gateway, task } = await play(async ({ sink }) => sink.emit(text('x')));
    const events = await gateway.events(task.id);
    edit(gateway.dir, ['DELETE FROM events WHERE position = ?', [Number(events.at(-1)!.id.slice(4))]]);
    const index = events.length - 1;
    await expectMissing(gateway, task, { kind: 'event', id: `${task.id}#${events.length}` }, { event_id: null, index });
  });
});

describe('a replay that is ended by others', () => {
  /** The receipt of a replay never claims the calls it repeated, however it came to its end. */
  function expectNothingDone(receipt: Receipt, again: Task, task: Task): void {
    check(Receipt, receipt, 'the receipt');
    expect(receipt).toMatchObject({
      receipt_id: again.id.replace(/^task/, 'receipt'),
      subject: { object: 'replay_segment', id: again.id },
      replay_input: { determinism: 'unavailable', unavailable_reason: 'the replay was stopped before it ended' },
      side_effects: { fs_writes: [], network_egress: [], tool_calls: [], a2a_handoffs: [] },
      cost: { total: 0 },
      metadata: { source_task_id: task.id },
      deltas: [],
    });
  }

  test('canceled in the middle', async () => {
    let gateway: TestGateway | undefined;
    const stopping = (store: Store): Store => ({
      ...store,
      async commit(unit) {
        const committed = await store.commit(unit);
        const end = committed.events.find(({ event, replayed }) => replayed && event === 'tool.completed');
        if (end) await gateway!.send('task.cancel', { task_id: end.task_id! }).catch(() => {});
        return committed;
      },
    });
    const played = await play(everything, { store: stopping });
    gateway = played.gateway;
    const again = await replay(gateway, played.task.id);
    expect(again.status).toBe('CANCELED');
    expectNothingDone(await gateway.receipt(again.id), again, played.task);
  });

  test('its process is gone', async () => {
    const agents = [scripted('one', everything)];
    const first = await openMortal({ rules: RULES, tools: [tools()], agents, settings });
    const { id } = await first.submit(await first.session());
    await eventually(async () => {
      for (const ask of await first.openAsks()) await sayYes(first, ask);
      return (await first.task(id)).status === 'COMPLETED';
    });
    const doomed = first.doom({ commit: 12, when: 'after' });
    const { resource } = await first.send('task.replay', { task_id: id });
    await doomed;
    await first.die();
    const second = await openTestGateway({ ...REAL_TIME, rules: RULES, agents, dir: first.dir });
    const again = await second.until(resource.id);
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'interrupted' } });
    expectNothingDone(await second.receipt(again.id), again, await second.task(id));
    // The next one has a number of its own.
    expect((await replay(second, id)).id).toBe(`${again.id}_2`);
  });
});
