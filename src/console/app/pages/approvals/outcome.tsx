/** How an approval ended, and by whom. */
import type { Me } from '../../api.ts';
import type { Ended } from '../../live/waiting.ts';
import { dayAndTime } from '../../ui.tsx';
import type { Question } from './card.tsx';

/** One answer counts, and this sentence says whose. */
export function Outcome({
  ask,
  ended,
  mine,
  me,
}: {
  readonly ask: Question['ask'];
  readonly ended: Ended | undefined;
  readonly mine: string | undefined;
  readonly me: Me;
}) {
  const state = ended?.state ?? (ask.state === 'open' ? mine : ask.state);
  if (!state) return null;
  const by = ended?.by ?? ask.answered_by ?? (mine ? me.actor.id : '');
  const at = ended?.at ?? ask.answered_at;
  const tone = state === 'approved' || state === 'answered' || state === 'sent' ? 'good' : 'bad';
  return (
    <p class={`outcome ${tone}`} role="status">
      {sentence(state, by === me.actor.id ? 'you' : by)}
      {at ? ` at ${dayAndTime(at)}` : ''}
      {mine && ended && ended.by !== me.actor.id ? '. Your answer came later and does not count.' : '.'}
    </p>
  );
}

export function sentence(state: string, by: string): string {
  switch (state) {
    case 'expired':
      return 'Not answered in time, which counts as denied';
    case 'canceled':
      return 'Withdrawn: the work it was about has ended';
    case 'sent':
    case 'answered':
      return `Answered by ${by}`;
    default:
      return `${state === 'approved' ? 'Approved' : 'Denied'} by ${by}`;
  }
}
