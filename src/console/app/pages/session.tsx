/** One session: what happened in it as nested spans on a common time line, the conversation, its files, and every event. */
import { useEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import { brief } from '../../../model/values/visible-text.ts';
import { all, call } from '../api.ts';
import { feed } from '../live/feed.ts';
import { follow } from '../live/stream.ts';
import { go, Link, withQuery } from '../router.tsx';
import { type EventRow, type LogEvent, str, taskText, toRow } from '../rows.ts';
import { spansOf } from '../spans.ts';
import { dayAndTime, Line, Title, Trouble, useLoad } from '../ui.tsx';
import { EventDetail } from './activity/event-detail.tsx';
import { EventList } from './activity/event-list.tsx';
import { Conversation } from './session/conversation.tsx';
import { Cost, usageIn } from './session/cost.tsx';
import { Files } from './session/files.tsx';
import { Losses } from './session/losses.tsx';
import { RunningTasks, type Session, Sessions, stateOf } from './session/sessions.tsx';
import { Timeline } from './session/timeline.tsx';

const TABS = ['timeline', 'conversation', 'files', 'cost', 'events'] as const;

export function SessionPage({ id, query }: { readonly id: string; readonly query: URLSearchParams }) {
  const { value, error } = useLoad(() => call<Session>(`/v1/sessions/${id}`), id);
  const events = useSessionEvents(id);
  const tab = (TABS as readonly string[]).includes(query.get('view') ?? '') ? query.get('view') : 'timeline';
  const open = query.get('open') ?? '';
  const show = (changes: Readonly<Record<string, string>>) =>
    go(`/sessions/${id}${withQuery(query, changes)}`, 'replace');
  const spans = useMemo(() => spansOf(events.all), [events.all.length]);
  const given = useMemo(() => brief(firstTaskText(events.list).slice(0, 1000), 300), [events.list.length]);
  const usage = useMemo(() => usageIn(events.list), [events.list.length]);
  if (!id) return query.get('tasks') === 'running' ? <RunningTasks /> : <Sessions />;
  return (
    <div class="page fill">
      <Title
        note={
          value &&
          `${stateOf(value)} · since ${dayAndTime(value.created_at)} · ${events.list.length.toLocaleString('en')} events${usage && ` · ${usage}`}`
        }
        actions={
          <>
            <Link to={`/activity?session=${id}`} class="button">
              Rows in Activity
            </Link>
            <Link to={`/replay?session=${id}`} class="button">
              Replay
            </Link>
          </>
        }
      >
        Session <span class="mono">{id}</span>
      </Title>
      {given && (
        <p class="lead">
          <Line text={given} />
        </p>
      )}
      <Trouble thrown={error} />
      <Losses events={events.list} show={(event) => show({ open: event })} />
      <div class="tabs">
        {TABS.map((name) => (
          <Link key={name} to={`/sessions/${id}?view=${name}`} current={tab === name}>
            {name[0]?.toUpperCase()}
            {name.slice(1)}
          </Link>
        ))}
      </div>
      <div class={`with-detail ${open ? 'open' : ''}`}>
        {tab === 'timeline' && <Timeline spans={spans} open={open} show={(event) => show({ open: event })} />}
        {tab === 'conversation' && <Conversation session={id} events={events.list} />}
        {tab === 'files' && <Files session={id} events={events.list} />}
        {tab === 'cost' && <Cost session={id} events={events.list} />}
        {tab === 'events' && (
          <EventList
            count={events.rows.length}
            at={(index) => events.rows[index] as EventRow}
            label="Events of the session, oldest first"
            open={open}
            show={(event) => show({ open: event })}
          />
        )}
        {open && (
          <EventDetail
            id={open}
            door={events.rows.find(({ door }) => door)?.door ?? ''}
            close={() => show({ open: '' })}
          />
        )}
      </div>
    </div>
  );
}

/** What the session began with. */
function firstTaskText(events: readonly LogEvent[]): string {
  return taskText(events.find(({ event }) => event === 'task.submitted')?.payload.task);
}

interface SessionEvents {
  readonly list: readonly LogEvent[];
  readonly rows: readonly EventRow[];
  /** With the events of work that was handed over, which has sessions of its own; in the order of the log. */
  readonly all: readonly LogEvent[];
}

/** Tasks of handed-over work that are shown with their own spans. */
const MOST_HANDED = 50;
/** Events of each of them. */
const MOST_OF_TASK = 5000;

interface Kept {
  readonly list: LogEvent[];
  readonly rows: EventRow[];
  all: LogEvent[];
}

function useSessionEvents(id: string): SessionEvents {
  const kept = useRef<Kept>({ list: [], rows: [], all: [] });
  const [, redraw] = useReducer((count: number, _: undefined) => count + 1, 0);
  useEffect(() => {
    if (!id) return;
    const stop = new AbortController();
    const now: Kept = { list: [], rows: [], all: [] };
    kept.current = now;
    /** Tasks that work of this session was handed to, each with the events that were read of it. */
    const handed = new Map<string, Set<string>>();
    let due = false;
    const add = (events: readonly LogEvent[]) => {
      if (events.length === 0) return;
      const ordered = (now.all.at(-1)?.id ?? '') < (events[0]?.id ?? '');
      now.all.push(...events);
      if (!ordered) now.all.sort((one, other) => (one.id < other.id ? -1 : 1));
      for (const { event, payload } of events) if (event === 'agent.handoff') void read(str(payload.task_id));
      if (due) return;
      due = true;
      requestAnimationFrame(() => {
        due = false;
        redraw(undefined);
      });
    };
    const addHanded = (task: string, events: readonly LogEvent[]) => {
      const seen = handed.get(task);
      const fresh = events.filter((event) => seen && event.session_id !== id && !seen.has(event.id));
      for (const event of fresh) seen?.add(event.id);
      add(fresh);
    };
    const read = async (task: string) => {
      if (task === '' || handed.has(task) || handed.size >= MOST_HANDED) return;
      handed.set(task, new Set());
      // Work at another gateway is not here, and work of others may be hidden.
      const events = await all<LogEvent>(`/v1/tasks/${encodeURIComponent(task)}/events`, MOST_OF_TASK).catch(() => []);
      if (!stop.signal.aborted) addHanded(task, events);
    };
    const leave = feed.onEvents((events) => {
      for (const event of events) if (event.task_id && handed.has(event.task_id)) addHanded(event.task_id, [event]);
    });
    void follow({
      path: `/v1/sessions/${encodeURIComponent(id)}/events/stream`,
      signal: stop.signal,
      onEvents(events) {
        for (const event of events) {
          now.list.push(event);
          now.rows.push(toRow(event));
        }
        add(events);
      },
    });
    return () => {
      leave();
      stop.abort();
    };
  }, [id]);
  return kept.current;
}
