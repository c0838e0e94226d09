/** Every act, decision and message as it happens. The filters are the address; a click on a row shows the whole event. */
import { useMemo, useRef, useState } from 'preact/hooks';
import { countUpTo, extend, type Filtered, wantedBy } from '../filters.ts';
import { feed, useFeed } from '../live/feed.ts';
import { go, Link, withQuery } from '../router.tsx';
import type { EventRow } from '../rows.ts';
import { Empty, Title, useKeys } from '../ui.tsx';
import { EventDetail } from './activity/event-detail.tsx';
import { EventList } from './activity/event-list.tsx';
import { Filters } from './activity/filters.tsx';

export function Activity({ query }: { readonly query: URLSearchParams }) {
  const live = useFeed();
  /** The newest event when the list was paused: rows before it may still come, from further back. */
  const [paused, setPaused] = useState<string>();
  const kept = useRef<Filtered | undefined>(undefined);
  const text = new URLSearchParams(query);
  text.delete('open');
  const key = text.toString();
  const wanted = useMemo(() => wantedBy(query), [key]);
  kept.current = extend(kept.current, live, key, wanted);
  const { rows } = kept.current;
  const count = paused === undefined ? rows.length : countUpTo(rows, paused);
  const open = query.get('open') ?? '';
  const show = (changes: Readonly<Record<string, string>>) => go(`/activity${withQuery(query, changes)}`, 'replace');
  const step = (by: number) => {
    const at = rows.findIndex(({ id }) => id === open);
    const next = rows[at < 0 ? count - 1 : Math.min(count - 1, Math.max(0, at - by))];
    if (next) show({ open: next.id });
  };
  const pause = () => setPaused(paused === undefined ? (live.rows.at(-1)?.id ?? '') : undefined);
  useKeys({ j: () => step(1), k: () => step(-1), p: pause, Escape: () => show({ open: '' }) });

  const behind = rows.length - count;
  return (
    <div class="page fill">
      <Title
        note={count === 1 ? '1 row' : `${count.toLocaleString('en')} rows`}
        actions={
          <>
            <button type="button" onClick={pause} aria-pressed={paused !== undefined}>
              {paused === undefined ? 'Pause' : `Resume${behind > 0 ? ` (${behind.toLocaleString('en')} new)` : ''}`}{' '}
              <kbd>p</kbd>
            </button>
            {live.mayHaveOlder && (
              <button type="button" disabled={live.readingOlder} onClick={() => void feed.older(20_000)}>
                Load older
              </button>
            )}
          </>
        }
      >
        Activity
      </Title>
      <Filters query={query} live={live} show={show} />
      <div class={`with-detail ${open ? 'open' : ''}`}>
        {count === 0 ? (
          <Empty title={live.rows.length === 0 ? 'Nothing has happened yet' : 'No row matches the filters'}>
            <Link to="/activity">Show everything</Link>
          </Empty>
        ) : (
          <EventList
            count={count}
            at={(index) => rows[count - 1 - index] as EventRow}
            label="Events, newest first"
            growsOnTop={{
              list: key,
              first: rows[count - 1]?.id,
              above: (id) => count - countUpTo(rows, id),
            }}
            open={open}
            show={(id) => show({ open: id })}
          />
        )}
        {open && <EventDetail id={open} door={doorOf(live.rows, open)} close={() => show({ open: '' })} />}
      </div>
    </div>
  );
}

/** The door of the work that this event belongs to. */
function doorOf(rows: readonly EventRow[], id: string): string {
  const task = rows.find((row) => row.id === id)?.task;
  return (task && rows.find((row) => row.task === task && row.door)?.door) || '';
}
