/** Calls, refusals, failures, time and cost by tool or by caller. */
import { Link } from '../../router.tsx';
import { type Measure, median } from '../../tally.ts';
import { Count, duration, Line, Table } from '../../ui.tsx';
import { rowsOf } from '../catalog/tools.tsx';

/** Each number leads to the rows it was counted from. */
export function Measured({
  title,
  filter,
  rows,
  since,
}: {
  readonly title: string;
  readonly filter: 'tool' | 'caller';
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
          {rows.slice(0, 12).map(({ name, server, calls, decisions, blocked, failed, times, usd }) => {
            const about = filter === 'tool' ? rowsOf(name, server) : `/activity?caller=${encodeURIComponent(name)}`;
            const to = (more: string) => `${about}&since=${since}${more && `&${more}`}`;
            const time = median(times);
            return (
              <tr key={`${server} ${name}`}>
                <td>
                  <Link to={to('')}>
                    <Line text={name} />
                  </Link>{' '}
                  {server && (
                    <span class="soft">
                      of <Line text={server} />
                    </span>
                  )}
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
