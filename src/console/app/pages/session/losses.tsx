/** What translations could not carry of the work of a session. */
import { useMemo } from 'preact/hooks';
import type { JsonObject } from '../../../../model/schema.ts';
import { lossIn } from '../../../../model/values/loss.ts';
import type { LogEvent } from '../../rows.ts';
import { Line } from '../../ui.tsx';

const MOST = 100;

/** What translations could not carry of the work, each with the event that says so. */
export function Losses({
  events,
  show,
}: {
  readonly events: readonly LogEvent[];
  readonly show: (event: string) => void;
}) {
  const found = useMemo(
    () => events.flatMap(({ id, payload }) => lossIn(payload as JsonObject).map((loss) => ({ id, ...loss }))),
    [events.length],
  );
  if (found.length === 0) return null;
  return (
    <details class="losses">
      <summary>
        Could not be carried: <Line text={[...new Set(found.map(({ aspect }) => aspect))].join(', ')} />
      </summary>
      <ul>
        {found.slice(0, MOST).map(({ id, aspect, why }, at) => (
          <li key={`${id} ${at}`}>
            <button type="button" class="link" onClick={() => show(id)}>
              <Line text={aspect} />
            </button>{' '}
            <Line text={why} />
          </li>
        ))}
      </ul>
    </details>
  );
}
