/**
 * A call that may wait for a person. The question is put to the person at the client; a client that asked for progress is told what
 * the call waits for, which keeps clients that restart their timer on progress from giving up. A call that is suspended until its client
 * returns has no request to report on.
 */
import type { CommandOf, JsonObject } from '../../../src/index.ts';
import { metaOf, notice, type Request } from '../frames.ts';
import type { ApprovalForms } from './approvals.ts';
import { type Caller, canFillForms } from './caller.ts';
import type { Running } from './suspended-calls.ts';

/** The members of a command during which a person may be asked. */
type AskingMembers = Required<Pick<CommandOf<'tool.call'>, 'signal' | 'withdrawn' | 'asked'>>;

/** Puts questions to the person at the client, and reports progress from the question until the call begins or comes to nothing. */
export type AskingPerson = <T>(
  request: Request,
  caller: Caller,
  running: Running,
  run: (members: AskingMembers, began: () => void) => Promise<T>,
) => Promise<T>;

export function createAsking(approvals: ApprovalForms): AskingPerson {
  return async ({ params }, caller, running, run) => {
    const { signal } = running;
    let stopReport = () => {};
    let stayed = () => {};
    const over = () => {
      stopReport();
      stayed();
    };
    const asked = (askId: string) => {
      stopReport = reportWaiting(params, caller, running, askId);
      stayed = caller.waits?.() ?? (() => {});
      void approvals.ask(caller, askId, (requests) => running.input(requests));
    };
    try {
      // A call that nobody waits for takes its question with it.
      return await run({ signal, withdrawn: signal, asked }, over);
    } finally {
      over();
    }
  };
}

/** Shorter than any client's usual timeout. */
const EVERY_MS = 10_000;
/** Progress has to grow, and the server's own begins at zero or one once the call runs. */
const STEP = 1e-6;

/** Reports from now on, until the returned function is called. */
function reportWaiting(params: JsonObject | undefined, caller: Caller, running: Running, askId: string): () => void {
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
