/** Calls, refusals, failures, time and cost by tool or by caller. */
import { Link } from '../../router.tsx';
import { type Measure, median } from '../../tally.ts';
import { Count, duration, Line, Table } from '../../ui.tsx';

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
        <Table columns={['Name']} numbers={['Calls', 'Decisions', 'Blocked', 'Failed', 'Median time', 'Cost']}>
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
        </Table>
      )}
    </section>
  );
}
