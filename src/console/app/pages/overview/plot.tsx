/** Decisions per minute, drawn by verdict. */
import { Link } from '../../router.tsx';
import { VERDICT_WORDS } from '../../rows.ts';
import { MINUTE_MS, type Tally } from '../../tally.ts';
import { timeOf } from '../../ui.tsx';

const NO_VERDICTS: ReadonlyMap<string, number> = new Map();

export function Plot({ tally, now }: { readonly tally: Tally; readonly now: number }) {
  const minute = Math.floor(now / MINUTE_MS);
  const columns = Array.from(
    { length: MINUTES },
    (_, at) => tally.minutes.get(minute - MINUTES + 1 + at)?.verdicts ?? NO_VERDICTS,
  );
  const sums = columns.map((column) => [...column.values()].reduce((sum, value) => sum + value, 0));
  const most = Math.max(1, ...sums);
  const highest = sums.indexOf(most);
  const startOf = (at: number) => (minute - MINUTES + 1 + at) * MINUTE_MS;
  const total = sums.reduce((sum, value) => sum + value, 0);
  return (
    <>
      <svg class="plot" viewBox={`0 0 ${MINUTES * 10} 70`} preserveAspectRatio="none">
        <title>{`${total} decisions in the last ${MINUTES} minutes, at most ${most} in one`}</title>
        {columns.map((column, at) => {
          const sum = sums[at] ?? 0;
          if (sum === 0) return null;
          const from = startOf(at);
          const name = `${timeOf(from).slice(0, 5)}: ${sum} ${sum === 1 ? 'decision' : 'decisions'}`;
          let top = 70;
          return (
            <Link key={String(at)} to={decisionsIn(from, from + MINUTE_MS)} label={name}>
              <title>{name}</title>
              {VERDICTS.map((verdict) => {
                const height = ((column.get(verdict) ?? 0) / most) * 66;
                top -= height;
                return height > 0 ? (
                  <rect key={verdict} class={`v-${verdict}`} x={at * 10 + 1} y={top} width="8" height={height} />
                ) : null;
              })}
            </Link>
          );
        })}
      </svg>
      <p class="axis">
        <span>{MINUTES} minutes ago</span>
        <span>now</span>
      </p>
      <p class="legend">
        {VERDICTS.map((verdict) => (
          <span key={verdict}>
            <i class={`v-${verdict}`} />
            {VERDICT_WORDS[verdict]}
          </span>
        ))}
        <span>
          <Link to={decisionsIn(startOf(0))}>{total.toLocaleString('en')}</Link> in {MINUTES} minutes
          {total > 0 && (
            <>
              , at most <Link to={decisionsIn(startOf(highest), startOf(highest + 1))}>{most}</Link> in one minute
            </>
          )}
        </span>
      </p>
    </>
  );
}

function decisionsIn(since: number, until?: number): string {
  return `/activity?group=decision&since=${since}${until ? `&until=${until}` : ''}`;
}

const MINUTES = 30;

export const VERDICTS = ['allow', 'escalate', 'modify', 'defer', 'block'] as const;
