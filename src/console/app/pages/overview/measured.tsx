/** Calls, refusals, failures, time and cost by tool or by caller. */
import { Link } from '../../router.tsx';
import { type Measure, median } from '../../tally.ts';
import { Count, duration, Line } from '../../ui.tsx';

/** Each number leads to the rows it was counted from. */
export function Measured({
  title,
  filter,
  rows,
  since,
}: {
  readonly title: string;
  readonly filter: string;
  readonly rows: readonly Measure[];
  readonly since: number;
}) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p class="soft">No calls in the last hour.</p>
      ) : (
        <div class="table-wrap" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th class="n">Calls</th>
                <th class="n">Decisions</th>
                <th class="n">Blocked</th>
                <th class="n">Failed</th>
                <th class="n">Median time</th>
                <th class="n">Cost</th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, 12).map(({ name, calls, decisions, blocked, failed, times, usd }) => {
                const to = (more: string) =>
                  `/activity?${filter}=${encodeURIComponent(name)}&since=${since}${more && `&${more}`}`;
                const time = median(times);
                return (
                  <tr key={name}>
                    <td>
                      <Link to={to('')}>
                        <Line text={name} />
                      </Link>
                    </td>
                    <Count to={to('event=tool.requested')} value={calls} />
                    <Count to={to('group=decision')} value={decisions} />
                    <Count to={to('verdict=block')} value={blocked} />
                    <Count to={to('event=tool.failed')} value={failed} />
                    <Count to={to('event=tool.completed')} value={times.length} text={duration(time ?? Number.NaN)} />
                    <Count to={to('')} value={usd} text={`${usd.toFixed(4)} USD`} />
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
