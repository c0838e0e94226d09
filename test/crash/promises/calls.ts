/**
 * Calls of callers outside: each that was answered is on exactly one receipt, or in work that is still open; each that reached its tool is
 * on record as one that may have run, unless it has no effect and was not answered; and what nobody saw end says why it is unknown.
 */
import type { CoreEvent } from '../../../src/model/events.ts';
import { Broken } from '../broken.ts';
import type { Called, CallLedger } from '../callers/ledger.ts';
import type { Evidence } from '../evidence.ts';

export interface CallCounts {
  readonly called: number;
  readonly answered: number;
  readonly sealed: number;
  /** In work that has not ended. */
  readonly open: number;
  /** Sealed, and nobody knows how they ended. */
  readonly unknown: number;
  /** Sealed as decided and ended in one commit. */
  readonly oneCommit: number;
}

interface EntryMetadata {
  readonly outcome?: string;
  readonly outcome_reason?: string;
  readonly one_commit?: boolean;
}
type Look = Pick<Evidence, 'events' | 'receipts' | 'runs'>;

/** Which outcomes agree with what a caller received; a caller that received nothing agrees with all of them. */
const AGREES: Readonly<Record<NonNullable<Called['received']>, readonly string[]>> = {
  succeeded: ['succeeded'],
  refused: ['refused'],
  'may run': ['succeeded', 'unknown'],
};
const MAY_HAVE_RUN = ['succeeded', 'failed', 'unknown'];

/** `reached`: what the tool was called with. */
export function callsAreAccountedFor(look: Look, { calls }: CallLedger, reached: ReadonlySet<string>): CallCounts {
  const requests = requestsIn(look.events);
  const sealed = sealedIn(look);
  const counts = { called: calls.length, answered: 0, sealed: 0, open: 0, unknown: 0, oneCommit: 0 };
  for (const call of calls) {
    const { nonce, by, received } = call;
    const found = requests.get(nonce) ?? [];
    const what = `${nonce} (${by})`;
    if (found.length > 1) throw new Broken('a call is on record once', `${what} is there ${found.length} times`, found);
    const [request] = found;
    if (received) counts.answered += 1;
    if (!request) {
      if (received) throw new Broken('an answered call is on record', `${what} was answered: ${received}`);
      if (reached.has(nonce) && !call.withoutEffect)
        throw new Broken('an answered call is on record', `${what} reached its tool unseen`);
      continue;
    }
    const entries = sealed.get(`${request.task_id} ${request.payload.tool_call_id}`) ?? [];
    const open = look.runs.has(request.task_id ?? '');
    if (entries.length !== (open ? 0 : 1)) {
      const state = open ? 'open' : 'over';
      throw new Broken(
        'a call is on one receipt',
        `${what}: its work is ${state}, it is on ${entries.length}`,
        request,
      );
    }
    counts.open += open ? 1 : 0;
    const [entry] = entries;
    if (!entry) continue;
    counts.sealed += 1;
    const { outcome, outcome_reason, one_commit } = (entry.metadata ?? {}) as EntryMetadata;
    if (one_commit) counts.oneCommit += 1;
    if (one_commit && !call.withoutEffect)
      throw new Broken('what may have an effect is decided first', `${what} was decided with its result`, entry);
    if (received && !AGREES[received].includes(outcome ?? ''))
      throw new Broken(
        'a receipt says what was told',
        `${what} was answered ${received}, and is sealed ${outcome}`,
        entry,
      );
    if (reached.has(nonce) && !MAY_HAVE_RUN.includes(outcome ?? ''))
      throw new Broken('a call that ran is not sealed as one that did not', `${what} is sealed ${outcome}`, entry);
    if (outcome !== 'unknown') continue;
    counts.unknown += 1;
    if (!outcome_reason) throw new Broken('what is unknown says why', what, entry);
  }
  return counts;
}

function requestsIn(events: readonly CoreEvent[]): Map<string, CoreEvent[]> {
  const requests = new Map<string, CoreEvent[]>();
  for (const event of events) {
    if (event.event !== 'tool.requested') continue;
    const { text, command } = (event.payload.input ?? {}) as { text?: string; command?: string };
    const nonce = text ?? command;
    if (nonce) requests.set(nonce, [...(requests.get(nonce) ?? []), event]);
  }
  return requests;
}

type Entry = Evidence['receipts'][number]['receipt']['side_effects']['tool_calls'][number];

function sealedIn({ receipts }: Look): Map<string, Entry[]> {
  const sealed = new Map<string, Entry[]>();
  for (const { receipt } of receipts) {
    for (const call of receipt.side_effects.tool_calls) {
      const key = `${receipt.identifiers.task_id} ${call.call_id}`;
      sealed.set(key, [...(sealed.get(key) ?? []), call]);
    }
  }
  return sealed;
}
