/** Decisions per minute, drawn by verdict. */
import { VERDICT_WORDS } from '../../rows.ts';
import { MINUTE_MS, type Tally } from '../../tally.ts';

const NO_VERDICTS: ReadonlyMap<string, number> = new Map();

export function Plot({ tally, now }: { readonly tally: Tally; readonly now: number }) {
  const minute = Math.floor(now / MINUTE_MS);
  const columns = Array.from(
    { length: MINUTES },
    (_, at) => tally.minutes.get(minute - MINUTES + 1 + at)?.verdicts ?? NO_VERDICTS,
  );
  const sums = columns.map((column) => [...column.values()].reduce((sum, value) => sum + value, 0));
  const most = Math.max(1, ...sums);
  const total = sums.reduce((sum, value) => sum + value, 0);
  return (
    <>
      <svg
        class="plot"
        viewBox={`0 0 ${MINUTES * 10} 70`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${total} decisions in the last ${MINUTES} minutes, at most ${most} in one`}
      >
        <title>{`at most ${most} in one minute`}</title>
        {columns.map((column, at) => {
          let top = 70;
          return VERDICTS.map((verdict) => {
            const height = ((column.get(verdict) ?? 0) / most) * 66;
            top -= height;
            return height > 0 ? (
              <rect key={`${at} ${verdict}`} class={`v-${verdict}`} x={at * 10 + 1} y={top} width="8" height={height} />
            ) : null;
          });
        })}
      </svg>
      <p class="legend">
        {VERDICTS.map((verdict) => (
          <span key={verdict}>
            <i class={`v-${verdict}`} />
            {VERDICT_WORDS[verdict]}
          </span>
        ))}
        <span>
          {total} in {MINUTES} minutes{total > 0 && `, at most ${most} in one`}
        </span>
      </p>
    </>
  );
}

const MINUTES = 30;

export const VERDICTS = ['allow', 'escalate', 'modify', 'defer', 'block'] as const;
