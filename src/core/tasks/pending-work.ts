/**
 * Whether silent work may be waiting: for an open question, or for a call of its own that is still running. Questions and calls of
 * dead processes do not count, because they will never be answered.
 */

import type { CoreEvent } from '../../model/events.ts';
import { asText } from '../../model/values/as-text.ts';
import type { Row, Store } from '../../ports/index.ts';
import type { RunRow } from '../events/rows.ts';

export interface PendingWorkDeps {
  readonly store: Pick<Store, 'get' | 'read'>;
  readonly isDead: (instance: string) => Promise<boolean>;
}

/** Held calls without an end, and the process that runs each where it is not the one that runs the task. */
type OpenCalls = Map<string, string | undefined>;

export async function isAwaiting({ store, isDead }: PendingWorkDeps, taskId: string): Promise<boolean> {
  const calls: OpenCalls = new Map();
  for await (const event of store.read({ stream: { of: 'task', id: taskId }, kinds: KINDS })) enter(calls, event);
  const lost = new Set<string>();
  for (const [id, served] of calls) if (served !== undefined && (await isDead(served))) lost.add(id);
  if (lost.size < calls.size) return true;
  const run = await store.get<RunRow & Row>('run', taskId);
  return run?.asks.some(({ state, key }) => state === 'open' && !lost.has(key)) ?? false;
}

function enter(calls: OpenCalls, { event, payload, metadata }: CoreEvent): void {
  const id = asText(payload.tool_call_id);
  switch (event) {
    case 'tool.requested':
      // A terminal runs on its own; an agent that waits for its end makes a call to do so.
      if (payload.evidence !== 'held' || payload.kind === 'terminal') return;
      calls.set(id, typeof metadata[SERVED_BY] === 'string' ? metadata[SERVED_BY] : undefined);
      return;
    case 'vendor.tollbridge.recovered':
      // Calls that the task's own process ran ended with that process.
      for (const [call, served] of calls) if (served === undefined) calls.delete(call);
      return;
    default:
      calls.delete(id);
  }
}
const KINDS = [
  'tool.requested',
  'tool.completed',
  'tool.failed',
  'tool.denied',
  'vendor.tollbridge.recovered',
] as const;

/** In the metadata of a call's request: the process that runs it, when another one runs its task. */
export const SERVED_BY = 'served_by';
