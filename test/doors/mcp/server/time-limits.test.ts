/** Time limits that are moved by use: one timer looks how long ago something was, and nothing ends early or late. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createIdle } from '../../../../adapters/mcp/client/idle.ts';
import { createResponseTimeout } from '../../../../adapters/mcp/client/timeout.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('what is used is not idle; what is not is let go once, and can be used again', () => {
  let over = 0;
  const idle = createIdle(100, () => {
    over += 1;
  });
  vi.advanceTimersByTime(1_000);
  expect(over).toBe(0);
  idle.used();
  for (let turn = 0; turn < 5; turn += 1) {
    vi.advanceTimersByTime(90);
    idle.used();
    expect(vi.getTimerCount()).toBe(1);
  }
  vi.advanceTimersByTime(99);
  expect(over).toBe(0);
  vi.advanceTimersByTime(2);
  expect(over).toBe(1);
  vi.advanceTimersByTime(1_000);
  expect(over).toBe(1);
  idle.used();
  vi.advanceTimersByTime(101);
  expect(over).toBe(2);
  idle.used();
  idle.stop();
  vi.advanceTimersByTime(1_000);
  expect(over).toBe(2);
});

test('a time no timer can hold is long, not short', () => {
  let over = 0;
  createIdle(Number.POSITIVE_INFINITY, () => {
    over += 1;
  }).used();
  vi.advanceTimersByTime(10_000);
  expect(over).toBe(0);
});

test('silence ends a call, progress moves that, and the bound moves for nobody', () => {
  const input = new AbortController().signal;
  const silent = createResponseTimeout(input, 100, 1_000);
  vi.advanceTimersByTime(99);
  expect(silent.signal.aborted).toBe(false);
  vi.advanceTimersByTime(2);
  expect(silent.signal.aborted).toBe(true);
  expect(silent.reason(new Error('x'))).toMatchObject({ kind: 'deadline_exceeded' });

  const moving = createResponseTimeout(input, 100, 1_000);
  for (let turn = 0; turn < 12; turn += 1) {
    vi.advanceTimersByTime(80);
    expect(moving.signal.aborted).toBe(false);
    moving.moved();
  }
  vi.advanceTimersByTime(50);
  expect(moving.signal.aborted).toBe(true);
});

test('the time of people is not counted, and one that has ended leaves nothing behind', async () => {
  const asking = new AbortController();
  const timeout = createResponseTimeout(asking.signal, 100, 10_000);
  let answer = (_: string) => {};
  const asked = timeout.during(new Promise<string>((resolve) => (answer = resolve)));
  vi.advanceTimersByTime(5_000);
  expect(timeout.signal.aborted).toBe(false);
  answer('yes');
  expect(await asked).toBe('yes');
  vi.advanceTimersByTime(90);
  expect(timeout.signal.aborted).toBe(false);
  vi.advanceTimersByTime(11 + 100);
  expect(timeout.signal.aborted).toBe(true);
  timeout.end();
  expect(vi.getTimerCount()).toBe(0);

  const other = createResponseTimeout(asking.signal, 100, 1_000);
  const reason = new Error('enough');
  asking.abort(reason);
  expect(other.signal.reason).toBe(reason);
  expect(other.reason(reason)).toBe(reason);
  other.end();
  expect(createResponseTimeout(asking.signal, 100, 1_000).signal.aborted).toBe(true);
});
