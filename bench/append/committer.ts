/**
 * One of several processes that commit to one log. Told how many callers to run and for how long, it answers with how many units they
 * committed; each unit changes a row of its own task, reads it first, and says a little.
 */
import { systemClock } from '../../src/core/clock.ts';
import type { EventDraft } from '../../src/model/events.ts';
import type { Projector, Row } from '../../src/ports/index.ts';
import { openStore, type StoreLocation } from '../../src/store/index.ts';

export interface CommitOrder {
  readonly callers: number;
  readonly ms: number;
}
export interface CommitReport {
  readonly units: number;
  readonly processorMs: number;
  /** How long the unit took that waited longest. */
  readonly longestMs: number;
}

/** Keeps a row for each task, as a projection does. */
const projector: Projector = {
  touches: ({ resource }) => [resource],
  apply: ({ resource, created_at, sequence }, rowOf) => {
    const row = rowOf(resource.object, resource.id);
    const body = { status: 'WORKING', session_id: `session_of_${resource.id}`, last: sequence };
    return [
      { put: { ...resource, created_at: row?.created_at ?? created_at, updated_at: created_at, ...body } as Row },
    ];
  },
};

const [location = '', number = ''] = process.argv.slice(2);
const TASK_LENGTH = 12;
const store = await openStore(JSON.parse(location) as StoreLocation, { clock: systemClock, projector, serving: true });
let tasks = 0;
let longestMs = 0;

async function caller(until: number): Promise<number> {
  let units = 0;
  while (performance.now() < until) {
    const id = `task_${number}_${++tasks}`;
    for (let count = 0; count < TASK_LENGTH; count += 1) {
      const event: EventDraft = {
        event: 'tool.completed',
        resource: { object: 'task', id },
        payload: { tool_call_id: `${id}.call${count}`, name: 'read_file', status: 'ok', duration_ms: 12 },
        session_id: `session_of_${id}`,
        task_id: id,
        actor: 'agent',
      };
      const began = performance.now();
      await store.commit({
        reads: [{ object: 'task', id }],
        decide: (at) => {
          at.get('task', id);
          return { events: [event] };
        },
      });
      longestMs = Math.max(longestMs, performance.now() - began);
      units += 1;
      if (performance.now() >= until) break;
    }
  }
  return units;
}

process.on('message', async ({ callers, ms }: CommitOrder) => {
  longestMs = 0;
  const before = process.cpuUsage();
  const until = performance.now() + ms;
  const done = await Promise.all(Array.from({ length: callers }, () => caller(until)));
  const { user, system } = process.cpuUsage(before);
  const units = done.reduce((sum, each) => sum + each, 0);
  process.send?.({ units, processorMs: (user + system) / 1_000, longestMs } satisfies CommitReport);
});
process.once('disconnect', () => void store.close());
process.send?.('ready');
