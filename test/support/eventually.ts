/** The one way in which tests poll: until a condition holds, or a deadline fails the test with what was waited for. */
import { setTimeout as pause } from 'node:timers/promises';

const INTERVAL_MS = 10;

export async function eventually<T>(
  look: () => T | Promise<T>,
  what = 'the condition',
  { timeoutMs = 15_000 }: { readonly timeoutMs?: number } = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found) return found as NonNullable<T>;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await pause(INTERVAL_MS);
  }
}
