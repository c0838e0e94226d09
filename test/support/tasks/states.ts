/** Which states of a task follow which, written down a second time, and what it came to. */
import { expect } from 'vitest';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { Outcome, Task } from '../../../src/model/resources.ts';
import type { Row } from '../../../src/ports/index.ts';
import type { TestGateway } from '../gateway/test-gateway.ts';

const LEGAL: Readonly<Record<string, readonly string[]>> = {
  null: ['SUBMITTED'],
  SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
  WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
  INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
  AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
};

const NAMES: Readonly<Record<string, string>> = {
  SUBMITTED: 'task.submitted',
  INPUT_REQUIRED: 'task.input_required',
  AUTH_REQUIRED: 'task.auth_required',
  COMPLETED: 'task.completed',
  FAILED: 'task.failed',
  CANCELED: 'task.canceled',
};

/** Every step of a task is legal, said once, under its own name, and starts where the last one ended. */
export function expectLegal(events: readonly CoreEvent[]): void {
  let state = 'null';
  for (const { event, payload } of events.filter(({ event }) => event.startsWith('task.'))) {
    const to = String(payload.to);
    expect(String(payload.from)).toBe(state);
    expect(LEGAL[state], `${state} → ${to}`).toContain(to);
    const back = to === 'WORKING' && state !== 'SUBMITTED';
    expect(event).toBe(to === 'WORKING' ? (back ? 'task.status_changed' : 'task.started') : NAMES[to]);
    expect((payload.task as unknown as Task).status).toBe(to);
    state = to;
  }
}

export async function outcomesOf(gateway: TestGateway, taskId: string): Promise<readonly (Outcome & Row)[]> {
  return await gateway.runtime.store.list<Outcome & Row>({ object: 'outcome', where: { task_id: taskId } });
}
