/**
 * The oracle of every hostile test and fuzzer: whatever an instrumented upstream saw as an act has in the log an allow of
 * exactly those arguments, written before it. Each allow counts once.
 */
import { join } from 'node:path';
import { systemClock } from '../../../src/core/clock.ts';
import { projector } from '../../../src/core/events/projector.ts';
import { isChanged } from '../../../src/model/asks.ts';
import { type CoreEvent, position } from '../../../src/model/events.ts';
import type { AskClosedPayload, AskOpenedPayload, DecidedPayload } from '../../../src/model/payloads.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { comparableText } from '../../../src/receipt/seal/canonical-json.ts';
import { openKeyring } from '../../../src/receipt/seal/keys.ts';
import { openStore, type StoreLocation } from '../../../src/store/index.ts';
import type { Contact } from './contacts.d.mts';

export type { Contact } from './contacts.d.mts';
export { forgetLogs, newestPosition, readContacts, recordContact } from './contacts.mjs';

/** One sentence per contact that nothing in the log allows. Reads a log that may be in use by another process. */
export async function checkActs(dataDir: string, contacts: readonly Contact[]): Promise<string[]> {
  const events = await readEvents(dataDir, EVENTS);
  const keyring = await openKeyring({ dir: join(dataDir, 'keys'), now: () => systemClock.now() });
  return violations(events, contacts, (args) => keyring.signer().mac(comparableText(args)));
}

/** Events of a log that may be in use by other processes: of a data directory, or wherever it is. */
export async function readEvents(log: string | StoreLocation, kinds?: readonly string[]): Promise<CoreEvent[]> {
  const location = typeof log === 'string' ? { path: join(log, 'log.db') } : log;
  const store = await openStore(location, { clock: systemClock, projector });
  try {
    const found: CoreEvent[] = [];
    for await (const event of store.read({ stream: { of: 'all' }, ...(kinds && { kinds }) })) found.push(event);
    return found;
  } finally {
    await store.close();
  }
}

const EVENTS = [
  'vendor.tollbridge.decided',
  'vendor.tollbridge.ask_opened',
  'vendor.tollbridge.ask_closed',
  'vendor.tollbridge.ask_used',
];

const CHANGED = 'changed_by_approver';

/** Leave for one act: what it covers, and where in the log it became good. */
interface Permit {
  readonly digest: string;
  readonly tool: string | undefined;
  readonly at: number;
}

/** The same for a log that is at hand, as a fuzzer in one process has it. */
export function violations(
  events: readonly CoreEvent[],
  contacts: readonly Contact[],
  digest: (args: JsonObject) => string,
): string[] {
  const permits = new Map<string, Permit[]>();
  for (const permit of permitsOf(events)) permits.set(permit.digest, [...(permits.get(permit.digest) ?? []), permit]);
  const found: string[] = [];
  for (const contact of contacts.toSorted((one, other) => one.after - other.after)) {
    const choices = [contact, ...(contact.or ?? [])];
    const used = choices.some((choice) => {
      const covering = permits.get(digest(choice.arguments)) ?? [];
      const fits = covering.findIndex(
        ({ at, tool }) => at <= contact.after && (choice.tool === undefined || choice.tool === tool),
      );
      if (fits >= 0) covering.splice(fits, 1);
      return fits >= 0;
    });
    if (!used) found.push(problem(contact, permits.get(digest(contact.arguments)) ?? []));
  }
  return found;
}

function problem({ tool = 'an act', arguments: args, after }: Contact, covering: readonly Permit[]): string {
  const shown = JSON.stringify(args).slice(0, 300);
  const late = covering.some(({ at }) => at > after);
  return late
    ? `${tool} ${shown} was seen before its allow was in the log`
    : `${tool} ${shown} was seen, and no unused allow in the log covers it`;
}

/**
 * Allowed by rules, or asked about, approved by a person and used. An approver who gave other arguments approved those alone: they are
 * allowed by the decision on them, which is written when the approval is used, and what was asked about is not.
 */
function* permitsOf(events: readonly CoreEvent[]): Generator<Permit> {
  const escalated = new Map<string, Omit<Permit, 'at'>>();
  const asked = new Map<string, Omit<Permit, 'at'>>();
  const approved = new Set<string>();
  const changed = new Set<string>();
  for (const { id, event, task_id, payload, replayed } of events) {
    if (replayed) continue;
    const at = position(id) ?? 0;
    if (event === 'vendor.tollbridge.decided') {
      const { action, decision } = payload as unknown as DecidedPayload;
      const { verdict, arguments_digest: digest } = decision;
      if (digest === undefined) continue;
      // An approver's own arguments need an approver who gave them.
      if (decision.code === CHANGED && !changed.delete(digest)) continue;
      if (verdict === 'allow' || verdict === 'modify') yield { digest, tool: action.tool, at };
      if (verdict === 'escalate') escalated.set(task_id ?? '', { digest, tool: action.tool });
    } else if (event === 'vendor.tollbridge.ask_opened') {
      const about = escalated.get(task_id ?? '');
      if (about) asked.set((payload as unknown as AskOpenedPayload).ask.id, about);
      escalated.delete(task_id ?? '');
    } else if (event === 'vendor.tollbridge.ask_closed') {
      const { ask_id, state, answer } = payload as unknown as AskClosedPayload;
      if (state === 'approved' && !isChanged(answer)) approved.add(ask_id);
      if (state === 'approved' && isChanged(answer)) changed.add(answer.arguments_digest);
    } else if (event === 'vendor.tollbridge.ask_used') {
      const about = asked.get(String(payload.ask_id));
      if (about && approved.delete(String(payload.ask_id))) yield { ...about, at };
    }
  }
}
