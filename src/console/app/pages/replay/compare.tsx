/** A replay beside its source: kind and content of each event. */
import { useEffect, useState } from 'preact/hooks';
import { all, call, type Task } from '../../api.ts';
import { Link } from '../../router.tsx';
import { type LogEvent, toRow } from '../../rows.ts';
import { Badge, Line, Title, Trouble, useLoad } from '../../ui.tsx';
import { pairUp } from './pairs.ts';

export const ENDED = ['COMPLETED', 'FAILED', 'CANCELED'];

export function Compare({ source, replay }: { readonly source: string; readonly replay: string }) {
  const [round, setRound] = useState(0);
  const task = useLoad(() => call<Task>(`/v1/tasks/${replay}`), `${replay} ${round}`);
  const events = useLoad(
    async () => ({
      left: await all<LogEvent>(`/v1/tasks/${source}/events`, 10_000),
      right: await all<LogEvent>(`/v1/tasks/${replay}/events`, 10_000),
    }),
    `${source} ${replay} ${round}`,
  );
  const over = task.value && ENDED.includes(task.value.status);
  useEffect(() => {
    if (over) return;
    const timer = setTimeout(() => setRound(round + 1), 1000);
    return () => clearTimeout(timer);
  }, [round, over]);
  const pairs = pairUp(events.value?.left ?? [], events.value?.right ?? [], [source, replay]);
  const different = pairs.filter(({ same }) => !same).length;
  return (
    <div class="page">
      <Title
        note={
          <span role="status">
            {over
              ? different === 0
                ? 'Each event of the replay has the kind and the content of its source.'
                : `${different} of ${pairs.length} events differ.`
              : 'Replaying…'}
          </span>
        }
        actions={<Link to={`/replay/${source}`}>Again</Link>}
      >
        Replay compared
      </Title>
      <Trouble thrown={task.error ?? events.error} />
      <div class="card">
        <table class="stacks compare">
          <thead>
            <tr>
              <th>As it happened ({source})</th>
              <th>Replayed ({replay})</th>
            </tr>
          </thead>
          <tbody>
            {pairs.slice(0, 2000).map(({ left, right, same }, at) => (
              <tr key={String(at)} class={same ? '' : 'different'}>
                <td>{left && <OneEvent event={left} />}</td>
                <td>
                  {!same && <Badge tone="warn">differs</Badge>}{' '}
                  {right ? <OneEvent event={right} /> : <span class="soft">no such event</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function OneEvent({ event }: { readonly event: LogEvent }) {
  const row = toRow(event);
  return (
    <Link to={`/activity?open=${event.id}`}>
      <Badge tone={row.tone}>{row.word}</Badge> <Line text={row.text} />
    </Link>
  );
}
