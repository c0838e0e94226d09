/** One event whole: as it came in, as it leaves at each door, and what the translation could not carry. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { JsonObject } from '../../../../model/schema.ts';
import { lossIn } from '../../../../model/values/loss.ts';
import { call } from '../../api.ts';
import { Link } from '../../router.tsx';
import type { LogEvent } from '../../rows.ts';
import { Json, Line, Trouble, useLoad } from '../../ui.tsx';

/** What a translation could not carry, as the event says it. */
function Losses({ event }: { readonly event: LogEvent }) {
  const lost = lossIn(event.payload as JsonObject);
  if (lost.length === 0) return null;
  return (
    <section class="loss" aria-label="What the translation could not carry">
      <h3>What the translation could not carry</h3>
      <ul>
        {lost.slice(0, 100).map(({ aspect, why }, at) => (
          <li key={String(at)}>
            <Line text={`${aspect}: ${why}`} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface Rendered {
  readonly protocol: string;
  readonly frames: readonly object[];
  readonly left_out: string | null;
}

/** The event as it came in beside the frames that it leaves as, at the door of one protocol. */
function Frames({
  id,
  door,
  children,
}: {
  readonly id: string;
  readonly door: string;
  readonly children: ComponentChildren;
}) {
  const { value, error } = useLoad(
    () => call<{ data: readonly Rendered[] }>(`/console/api/events/${id}/frames`),
    `frames ${id}`,
  );
  const [chosen, setChosen] = useState('');
  const all = value?.data ?? [];
  const shown =
    all.find(({ protocol }) => protocol === (chosen || door)) ?? all.find(({ frames }) => frames.length > 0);
  return (
    <div class="side">
      <div>{children}</div>
      <div>
        <h3>
          As it leaves at the door{' '}
          <select
            aria-label="Door"
            value={shown?.protocol ?? ''}
            onChange={(event) => setChosen(event.currentTarget.value)}
          >
            {all.map(({ protocol, frames }) => (
              <option key={protocol} value={protocol}>
                {`${protocol} (${frames.length})`}
              </option>
            ))}
          </select>
        </h3>
        <Trouble thrown={error} />
        {shown?.frames.map((frame, at) => (
          <Json key={String(at)} value={frame} />
        ))}
        {shown?.left_out && (
          <p class="soft">
            No frame: <Line text={shown.left_out} />
          </p>
        )}
        <p class="soft">Rendered now from the log, by the code of that door: frames that left are not kept.</p>
      </div>
    </div>
  );
}

export function EventDetail({
  id,
  close,
  door = '',
}: {
  readonly id: string;
  readonly close: () => void;
  /** The door that the work came through. */
  readonly door?: string;
}) {
  const { value, error } = useLoad(() => call<LogEvent>(`/console/api/events/${id}`), id);
  const { ext, payload, ...envelope } = value ?? { payload: {} };
  return (
    <aside class="card detail" aria-label="The event">
      <header>
        <h2>
          <Line text={value?.event ?? id} />
        </h2>
        <button type="button" class="quiet" onClick={close} aria-label="Close">
          ✕
        </button>
      </header>
      <Trouble thrown={error} />
      {value && (
        <>
          <p class="context">
            {value.session_id && <Link to={`/sessions/${value.session_id}`}>session</Link>}
            {value.session_id && <Link to={`/activity?session=${value.session_id}`}>rows of this session</Link>}
            {value.task_id && <Link to={`/proof?task=${value.task_id}`}>receipts of this task</Link>}
          </p>
          <Losses event={value} />
          <Frames id={id} door={door}>
            <h3>As it came in, in the words of the log</h3>
            <Json value={payload} />
            {ext ? (
              <>
                <p class="soft">Members of the frame that the log's own words have no place for:</p>
                <Json value={ext} />
              </>
            ) : (
              <p class="soft">The log's own words hold all of it.</p>
            )}
          </Frames>
          <h3>Envelope</h3>
          <Json value={envelope} />
        </>
      )}
    </aside>
  );
}
