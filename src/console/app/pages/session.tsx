/** One session: what happened in it as nested spans on a common time line, the conversation, its files, and every event. */
import { useEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import { call } from '../api.ts';
import { go, Link, withQuery } from '../router.tsx';
import { type EventRow, type LogEvent, toRow } from '../rows.ts';
import { spansOf } from '../spans.ts';
import { follow } from '../stream.ts';
import { dayAndTime, Title, Trouble, useLoad } from '../ui.tsx';
import { EventDetail } from './activity/event-detail.tsx';
import { EventList } from './activity/event-list.tsx';
import { Conversation } from './session/conversation.tsx';
import { Cost, usageIn } from './session/cost.tsx';
import { Files } from './session/files.tsx';
import { Losses } from './session/losses.tsx';
import { type Session, Sessions, stateOf } from './session/sessions.tsx';
import { Timeline } from './session/timeline.tsx';

const TABS = ['timeline', 'conversation', 'files', 'cost', 'events'] as const;

export function SessionPage({ id, query }: { readonly id: string; readonly query: URLSearchParams }) {
  const { value, error } = useLoad(() => call<Session>(`/v1/sessions/${id}`), id);
  const events = useSessionEvents(id);
  const tab = (TABS as readonly string[]).includes(query.get('view') ?? '') ? query.get('view') : 'timeline';
  const open = query.get('open') ?? '';
  const show = (changes: Readonly<Record<string, string>>) =>
    go(`/sessions/${id}${withQuery(query, changes)}`, 'replace');
  const spans = useMemo(() => spansOf(events.list), [events.list.length]);
  const usage = useMemo(() => usageIn(events.list), [events.list.length]);
  if (!id) return <Sessions />;
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

function useSessionEvents(id: string): { readonly list: readonly LogEvent[]; readonly rows: readonly EventRow[] } {
  const kept = useRef<{ list: LogEvent[]; rows: EventRow[] }>({ list: [], rows: [] });
  const [, redraw] = useReducer((count: number, _: undefined) => count + 1, 0);
  useEffect(() => {
    if (!id) return;
    const stop = new AbortController();
    kept.current = { list: [], rows: [] };
    let due = false;
    void follow({
      path: `/v1/sessions/${id}/events/stream`,
      signal: stop.signal,
      onEvents(events) {
        for (const event of events) {
          kept.current.list.push(event);
          kept.current.rows.push(toRow(event));
        }
        if (due) return;
        due = true;
        requestAnimationFrame(() => {
          due = false;
          redraw(undefined);
        });
      },
    });
    return () => stop.abort();
  }, [id]);
  return kept.current;
}
