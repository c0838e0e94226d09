/**
 * Progress while a call waits for a person, for clients that asked for progress: it says what the call waits for, and keeps clients that
 * restart their timer on progress from giving up. A call that is suspended until its client returns has no request to report on.
 */
import type { JsonObject } from '../../../src/index.ts';
import { metaOf, notice } from '../frames.ts';
import { type Caller, canFillForms } from './caller.ts';
import type { Running } from './suspended-calls.ts';

/** Shorter than any client's usual timeout. */
const EVERY_MS = 10_000;
/** Progress has to grow, and the server's own begins at zero or one once the call runs. */
const STEP = 1e-6;

/** Reports from now on, until the returned function is called. */
export function reportWaiting(
  params: JsonObject | undefined,
  caller: Caller,
  running: Running,
  askId: string,
): () => void {
  const { progressToken } = metaOf(params);
  const suspends = caller.era === 'modern' && caller.person !== undefined && canFillForms(caller.capabilities);
  if (progressToken === undefined || suspends) return () => {};
  let progress = 0;
  const message = `waiting for approval ${askId}: answer in the console, or with: tollbridge approve ${askId}`;
  const report = () => {
    running.notify(notice('notifications/progress', { progressToken, progress, message }));
    progress += STEP;
  };
  report();
  const timer = setInterval(report, EVERY_MS).unref();
  const over = () => {
    clearInterval(timer);
    running.signal.removeEventListener('abort', over);
  };
  running.signal.addEventListener('abort', over, { once: true });
  return over;
}
