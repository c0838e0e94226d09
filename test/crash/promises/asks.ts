/** Questions to people: open until a person answers or their time is up, answered once, spent once. */
import { isTerminal } from '../../../src/model/words.ts';
import { Broken } from '../broken.ts';
import type { Ledger } from '../clients/ledger.ts';
import type { Evidence } from '../evidence.ts';

const BY_PEOPLE: readonly string[] = ['approved', 'denied', 'answered'];

export function questionsKeep(evidence: Evidence, ledger: Ledger): void {
  for (const id of ledger.asks.keys())
    if (!evidence.asks.has(id)) throw new Broken('open questions stay open', `${id} was shown as open and is gone`);

  const answers = new Set(ledger.writes.filter(({ kind }) => kind === 'answer').map(({ nonce }) => nonce));
  const closed = new Map<string, { state: string; at: string }>();
  const used = new Set<string>();
  /** Tasks that were asked to stop: their questions are taken back with the same commit, their end comes with a later one. */
  const stopped = new Set<string | null | undefined>();
  for (const { id: event, event: kind, payload, created_at, task_id } of evidence.events) {
    if (kind === 'user.cancel_requested') stopped.add(task_id);
    const id = String(payload.ask_id);
    const ask = evidence.asks.get(id);
    if (kind === 'vendor.tollbridge.ask_closed') {
      if (closed.has(id)) throw new Broken('a question is answered once', `${id} was closed again by ${event}`);
      const { state, reason, answer } = payload as { state: string; reason?: string; answer?: unknown };
      closed.set(id, { state, at: created_at });
      if (evidence.replays.has(ask?.task_id ?? '')) continue; // answered by the record
      if (BY_PEOPLE.includes(state) && !answers.has(reason ?? String(answer)))
        throw new Broken('open questions stay open', `${id} is ${state}, and nobody said so`, payload);
      if (state === 'expired' && created_at < (ask?.expires_at ?? ''))
        throw new Broken('open questions stay open', `${id} expired before its time`, { ask, created_at });
      const task = evidence.tasks.get(ask?.task_id ?? '');
      if (state === 'canceled' && !isTerminal(task?.status ?? '') && !stopped.has(task_id))
        throw new Broken('open questions stay open', `${id} was withdrawn and its task goes on`);
    }
    if (kind === 'vendor.tollbridge.ask_used') {
      if (used.has(id)) throw new Broken('an approval is good for one act', `${id} was used again`);
      if (!closed.has(id)) throw new Broken('an approval is good for one act', `${id} was used before it was answered`);
      used.add(id);
    }
  }
  for (const { id, state } of evidence.asks.values()) {
    const expected = closed.get(id)?.state ?? 'open';
    if (state !== expected) throw new Broken('a question is where its events say', `${id}: ${state}, not ${expected}`);
  }
  answeredStayAnswered(evidence, ledger);
}

/** A yes or a no that was acknowledged is the one that counts. */
function answeredStayAnswered({ asks }: Evidence, ledger: Ledger): void {
  for (const { about = '', nonce, body } of ledger.accepted('answer')) {
    const ask = asks.get(about);
    if (ask?.reason !== nonce && ask?.answer !== nonce)
      throw new Broken('answered questions stay answered', `${about} was answered with ${nonce}`, { ask, body });
  }
}

/** Questions that have to be open when the gateway is back: nobody answered, they are not due, their task goes on. */
export function stillOpen({ asks, events, replays }: Evidence): { id: string; expires_at: string }[] {
  const stopped = new Set(events.flatMap(({ event, task_id }) => (event === 'user.cancel_requested' ? [task_id] : [])));
  return [...asks.values()].filter(
    ({ state, task_id }) => state === 'open' && !stopped.has(task_id) && !replays.has(task_id),
  );
}
