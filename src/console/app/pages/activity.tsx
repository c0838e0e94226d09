/** Every act, decision and message as it happens. The filters are the address; a click on a row shows the whole event. */
import type { ComponentChildren } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { JsonObject } from '../../../model/schema.ts';
import { lossIn } from '../../../model/values/loss.ts';
import { call } from '../api.ts';
import { type Feed, feed, useFeed } from '../feed.ts';
import { type Choices, extend, extendChoices, FILTERS, type Filtered, type FilterName, wantedBy } from '../filters.ts';
import { go, Link, withQuery } from '../router.tsx';
import type { EventRow, LogEvent } from '../rows.ts';
import { Badge, Empty, Json, Line, Title, Trouble, timeOf, useKeys, useLoad } from '../ui.tsx';
import { Virtual } from '../virtual.tsx';

const GROUPS = ['act', 'decision', 'approval', 'message', 'task', 'proof', 'system'];
const SELECTS: readonly FilterName[] = ['group', 'door', 'agent', 'tool', 'verdict', 'effect', 'person'];

export function Activity({ query }: { readonly query: URLSearchParams }) {
  const live = useFeed();
  const [paused, setPaused] = useState<number>();
  const kept = useRef<Filtered | undefined>(undefined);
  const text = new URLSearchParams(query);
  text.delete('open');
  const key = text.toString();
  const wanted = useMemo(() => wantedBy(query), [key]);
  kept.current = extend(kept.current, live, key, wanted);
  const { rows } = kept.current;
  const count = Math.min(paused ?? rows.length, rows.length);
  const open = query.get('open') ?? '';
  const show = (changes: Readonly<Record<string, string>>) => go(`/activity${withQuery(query, changes)}`, 'replace');
  const step = (by: number) => {
    const at = rows.findIndex(({ id }) => id === open);
    const next = rows[at < 0 ? count - 1 : Math.min(count - 1, Math.max(0, at - by))];
    if (next) show({ open: next.id });
  };
  const pause = () => setPaused(paused === undefined ? rows.length : undefined);
  useKeys({ j: () => step(1), k: () => step(-1), p: pause, Escape: () => show({ open: '' }) });

  const behind = rows.length - count;
  return (
    <div class="page fill">
      <Title
        note={`${count.toLocaleString('en')} rows`}
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
            growsOnTop={`${live.epoch} ${key}`}
            open={open}
            show={(id) => show({ open: id })}
          />
        )}
        {open && <EventDetail id={open} door={doorOf(live.rows, open)} close={() => show({ open: '' })} />}
      </div>
    </div>
  );
}

interface EventListProps {
  readonly count: number;
  /** The row at this place, counted from the top. */
  readonly at: (index: number) => EventRow;
  readonly label: string;
  readonly growsOnTop?: string;
  /** Id of the event that is shown beside the list; empty for none. */
  readonly open: string;
  readonly show: (id: string) => void;
}

export function EventList({ count, at, label, growsOnTop, open, show }: EventListProps) {
  return (
    <Virtual
      count={count}
      label={label}
      growsOnTop={growsOnTop}
      row={(index, style) => {
        const row = at(index);
        return (
          <ActivityRow key={row.id} row={row} style={style} selected={row.id === open} open={() => show(row.id)} />
        );
      }}
    />
  );
}

interface RowProps {
  readonly row: EventRow;
  readonly style: { readonly top: string };
  readonly selected: boolean;
  readonly open: () => void;
}

function ActivityRow({ row, style, selected, open }: RowProps) {
  return (
    <button type="button" class={`row ${selected ? 'selected' : ''}`} style={style} onClick={open} data-id={row.id}>
      <span class="time">{timeOf(row.at)}</span>
      <span>
        <Badge tone={row.tone}>{row.word}</Badge>
      </span>
      <span class="optional">
        <Line text={row.agent || row.person} />
      </span>
      <span class="optional soft">
        <Line text={row.door || row.server} />
      </span>
      <span>{row.text}</span>
      <span class="optional soft">
        <Line text={row.rule} />
      </span>
    </button>
  );
}

interface FiltersProps {
  readonly query: URLSearchParams;
  readonly live: Feed;
  readonly show: (changes: Readonly<Record<string, string>>) => void;
}

function Filters({ query, live, show }: FiltersProps) {
  const kept = useRef<Choices | undefined>(undefined);
  kept.current = extendChoices(kept.current, live, SELECTS);
  const choices = (name: FilterName) => [...(kept.current?.found.get(name) ?? [])].sort();
  const others = FILTERS.filter((name) => !SELECTS.includes(name) && query.get(name));
  return (
    <search class="filters">
      <input
        class="wide-filter"
        type="search"
        aria-label="Text"
        placeholder="Text"
        value={query.get('text') ?? ''}
        onInput={(event) => show({ text: event.currentTarget.value })}
      />
      {SELECTS.map((name) => (
        <select
          key={name}
          class={name === 'group' || name === 'verdict' ? '' : 'extra'}
          aria-label={LABELS[name] ?? name}
          value={query.get(name) ?? ''}
          onChange={(event) => show({ [name]: event.currentTarget.value })}
        >
          <option value="">{LABELS[name] ?? name}</option>
          {withCurrent(name === 'group' ? GROUPS : choices(name), query.get(name)).map((value) => (
            <option key={value} value={value}>
              {value}
            </option>
          ))}
        </select>
      ))}
      {others.map((name) => (
        <button key={name} type="button" onClick={() => show({ [name]: '' })}>
          {name}: <Line text={(query.get(name) ?? '').slice(-24)} /> ✕
        </button>
      ))}
      {[...query.keys()].some((name) => name !== 'open') && <Link to="/activity">Clear</Link>}
    </search>
  );
}

const LABELS: Readonly<Record<string, string>> = {
  group: 'Kind',
  door: 'Door',
  agent: 'Agent',
  tool: 'Tool',
  verdict: 'Decision',
  effect: 'Effect',
  person: 'Person',
};

function withCurrent(values: readonly string[], current: string | null): readonly string[] {
  return current && !values.includes(current) ? [current, ...values] : values;
}

/** The door of the work that this event belongs to. */
function doorOf(rows: readonly EventRow[], id: string): string {
  const task = rows.find((row) => row.id === id)?.task;
  return (task && rows.find((row) => row.task === task && row.door)?.door) || '';
}

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
            <h3>As it came in</h3>
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
