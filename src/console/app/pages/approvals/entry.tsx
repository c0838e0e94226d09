/** One line of the queue of approvals. */

import type { Waiting } from '../../live/waiting.ts';
import { Link } from '../../router.tsx';
import { bag, str } from '../../rows.ts';
import { Badge, duration, Line, useNow } from '../../ui.tsx';

export function Entry({ one, current }: { readonly one: Waiting; readonly current: boolean }) {
  const now = useNow(5000);
  const { tool, kind, actor, effect } = one.action;
  return (
    <Link to={`/approvals/${one.id}`} class="entry" current={current}>
      <span class="entry-what">
        <b>
          <Line text={str(tool) || str(kind) || 'A question'} />
        </b>{' '}
        <Line text={aboutText(one)} />
      </span>
      <span class="entry-who">
        <Line text={str(actor)} /> {str(effect) && <Badge tone={toneOf(str(effect))}>{str(effect)}</Badge>}
      </span>
      <span class="entry-time">{timeLeft(one.expires_at, now)}</span>
    </Link>
  );
}

export function toneOf(effect: string): string {
  return effect === 'read' || effect === 'none'
    ? 'good'
    : effect === 'delete' || effect === 'pay' || effect === 'unknown'
      ? 'bad'
      : 'warn';
}

export function timeLeft(expires: string, now: number): string {
  const left = Date.parse(expires) - now;
  if (left <= 0) return 'time is up';
  // Rounded down: nobody is promised a minute that is not there.
  return `${duration(left < 90_000 ? left : Math.floor(left / 60_000) * 60_000)} left`;
}

/** What the act is about: its target, or the values of its arguments. */
export function aboutText({ action }: Waiting): string {
  return (str(action.target) || argumentsText(action.arguments)).slice(0, 120);
}

/** The values of the arguments: the card has them whole, with their names. */
function argumentsText(given: unknown): string {
  return Object.values(bag(given))
    .map((value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')))
    .join(' · ');
}
