/** A stop is received as an abort is: once, in order, and not by the client that no longer listens. */
import { expect, test } from 'vitest';
import { Stop, type StopSignal } from '../../../src/transport/light-abort-signal.ts';

function listening(signal: StopSignal, abort: (reason: unknown) => void): readonly unknown[] {
  const received: unknown[] = [];
  const gone = () => received.push('gone');
  signal.addEventListener('abort', () => received.push(['first', signal.aborted, signal.reason]), { once: true });
  signal.addEventListener('abort', gone, { once: true });
  signal.addEventListener('abort', () => received.push('second'), { once: true });
  signal.removeEventListener('abort', gone);
  abort('enough');
  abort('again');
  signal.addEventListener('abort', () => received.push('late'));
  return [...received, signal.aborted, signal.reason];
}

test('as a signal of the platform is received, so is this one', () => {
  const real = new AbortController();
  const ours = new Stop();
  const expected = [['first', true, 'enough'], 'second', true, 'enough'];
  expect(listening(real.signal, (reason) => real.abort(reason))).toEqual(expected);
  expect(listening(ours, (reason) => ours.abort(reason))).toEqual(expected);
});

test('one that fires without a reason has an error for one', () => {
  const stop = new Stop();
  expect(stop.aborted).toBe(false);
  stop.abort();
  expect(stop.reason).toBeInstanceOf(Error);
});
