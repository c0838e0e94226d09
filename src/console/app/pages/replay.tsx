/** Runs an ended task again, from its record or with other answers, and compares kind and summary of each event. */
import { useEffect, useState } from 'preact/hooks';
import { all, call, holds, type Me } from '../api.ts';
import { go, Link } from '../router.tsx';
import { type LogEvent, toRow } from '../rows.ts';
import { Badge, dayAndTime, Empty, Line, Table, Title, Trouble, useLoad } from '../ui.tsx';

interface Task {
  readonly id: string;
  readonly session_id: string;
  readonly status: string;
  readonly created_at: string;
  readonly input?: unknown;
  readonly replay?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

const ENDED = ['COMPLETED', 'FAILED', 'CANCELED'];

export function Replay({ me, id, query }: { readonly me: Me; readonly id: string; readonly query: URLSearchParams }) {
  if (id && query.get('with')) return <Compare source={id} replay={query.get('with') ?? ''} />;
  if (id) return <Start me={me} id={id} />;
  return <Tasks session={query.get('session') ?? ''} />;
}

function Tasks({ session }: { readonly session: string }) {
  const { value, error } = useLoad(
    () => all<Task>(`/v1/tasks${session ? `?session_id=${session}` : ''}`, 2000),
    `tasks ${session}`,
  );
  const ended = (value ?? []).filter(({ status }) => ENDED.includes(status)).toReversed();
  return (
    <div class="page">
      <Title note="choose a task that has ended">Replay</Title>
      <Trouble thrown={error} />
      {value && ended.length === 0 && <Empty title="No task has ended yet" />}
      {ended.length > 0 && (
        <div class="card table-wrap" tabIndex={0}>
          <table>
            <tbody>
              {ended.slice(0, 300).map((task) => (
                <tr key={task.id}>
                  <td>
                    <Link to={`/replay/${task.id}`}>{task.id}</Link>
                  </td>
                  <td>
                    <Badge tone={task.status === 'COMPLETED' ? 'good' : 'bad'}>{task.status.toLowerCase()}</Badge>
                  </td>
                  <td class="soft">{dayAndTime(task.created_at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

const MODES = [
  { mode: 'exact', name: 'Exactly as recorded' },
  { mode: 'with_overrides', name: 'With other answers' },
  { mode: 'from_checkpoint', name: 'From a checkpoint' },
];

function Start({ me, id }: { readonly me: Me; readonly id: string }) {
  const [mode, setMode] = useState('exact');
  const [overrides, setOverrides] = useState('[]');
  const [checkpoint, setCheckpoint] = useState('');
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<unknown>();
  const start = async () => {
    setBusy(true);
    setTrouble(undefined);
    try {
      const body = {
        mode,
        ...(mode !== 'exact' && { overrides: JSON.parse(overrides) }),
        ...(mode === 'from_checkpoint' && { checkpoint_id: checkpoint }),
      };
      const made = await call<Task>(`/v1/tasks/${id}/replay`, { json: body });
      go(`/replay/${id}?with=${made.id}`);
    } catch (thrown) {
      setTrouble(thrown);
      setBusy(false);
    }
  };
  return (
    <div class="page">
      <Title>
        Replay of <span class="mono">{id}</span>
      </Title>
      <form
        class="card stack"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <label>
          <span>Mode</span>
          <select value={mode} onChange={(event) => setMode(event.currentTarget.value)}>
            {MODES.map((one) => (
              <option key={one.mode} value={one.mode}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
        {mode !== 'exact' && (
          <label>
            <span>
              Overrides, as JSON: each names a recorded answer (its key is in the receipt's replay materials) and the
              value to use instead
            </span>
            <textarea class="code" value={overrides} onInput={(event) => setOverrides(event.currentTarget.value)} />
          </label>
        )}
        {mode === 'from_checkpoint' && (
          <label>
            <span>Checkpoint</span>
            <input value={checkpoint} onInput={(event) => setCheckpoint(event.currentTarget.value)} />
          </label>
        )}
        <Trouble thrown={trouble} />
        {holds(me, 'tasks:write') ? (
          <div class="choice">
            <button type="submit" class="primary" disabled={busy}>
              Start the replay
            </button>
          </div>
        ) : (
          <p class="soft">Starting a replay takes the scope tasks:write.</p>
        )}
      </form>
    </div>
  );
}

function Compare({ source, replay }: { readonly source: string; readonly replay: string }) {
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
                ? 'Each event of the replay has the kind and the summary of its source.'
                : `${different} of ${pairs.length} events differ.`
              : 'Replaying…'}
          </span>
        }
        actions={<Link to={`/replay/${source}`}>Again</Link>}
      >
        Replay compared
      </Title>
      <Trouble thrown={task.error ?? events.error} />
      <Table card columns={[`As it happened (${source})`, `Replayed (${replay})`]}>
        {pairs.slice(0, 2000).map(({ left, right, same }, at) => (
          <tr key={String(at)} class={same ? '' : 'different'}>
            <td>{left && <OneEvent event={left} />}</td>
            <td>
              {!same && <Badge tone="warn">differs</Badge>}{' '}
              {right ? <OneEvent event={right} /> : <span class="soft">no such event</span>}
            </td>
          </tr>
        ))}
      </Table>
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

/**
 * Events that a replay repeats, by their kind and their count among those of that kind; its own beginning and end have no
 * counterpart, and neither has the order in which a start and its decision were written.
 */
function pairUp(left: readonly LogEvent[], right: readonly LogEvent[], ids: readonly string[]) {
  const named = (events: readonly LogEvent[]) => {
    const counts = new Map<string, number>();
    return events
      .filter(({ event }) => !event.startsWith('replay.') && !event.startsWith('receipt.'))
      .map((event) => {
        const count = (counts.get(event.event) ?? 0) + 1;
        counts.set(event.event, count);
        return [`${event.event} ${count}`, event] as const;
      });
  };
  const words = (event: LogEvent) => ids.reduce((text, id) => text.replaceAll(id, ''), toRow(event).text);
  const others = new Map(named(right));
  const pairs = named(left).map(([name, one]) => {
    const other = others.get(name);
    others.delete(name);
    return {
      left: one as LogEvent | undefined,
      right: other,
      same: other !== undefined && words(one) === words(other),
    };
  });
  return [...pairs, ...[...others.values()].map((other) => ({ left: undefined, right: other, same: false }))];
}
