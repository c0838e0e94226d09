/** One session: what happened in it as nested spans on a common time line, the conversation, its files, and every event. */
import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import { fileDiff } from '../../../inbox/file-diff.ts';
import type { JsonObject } from '../../../model/schema.ts';
import { lossIn } from '../../../model/values/loss.ts';
import { all, call, textAt } from '../api.ts';
import { writtenFiles } from '../file-changes.ts';
import { go, Link, withQuery } from '../router.tsx';
import { bag, type EventRow, type LogEvent, messageText, str, toRow, usdIn } from '../rows.ts';
import { type Span, spansOf } from '../spans.ts';
import { follow } from '../stream.ts';
import { Badge, Block, Diff, dayAndTime, duration, Empty, Line, Title, Trouble, useLoad } from '../ui.tsx';
import { Virtual } from '../virtual.tsx';
import { EventDetail, EventList } from './activity.tsx';

interface Session {
  readonly id: string;
  readonly status?: string;
  readonly state?: string;
  readonly created_at: string;
  readonly summary?: string | null;
}

function stateOf({ status, state }: Session): string {
  return (status ?? state ?? '').toLowerCase();
}

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

function Timeline({
  spans,
  open,
  show,
}: {
  readonly spans: readonly Span[];
  readonly open: string;
  readonly show: (event: string) => void;
}) {
  if (spans.length === 0) return <Empty title="No work in this session yet" />;
  const first = Math.min(...spans.slice(0, 5000).map(({ from }) => from));
  const last = spans.reduce((max, { to, from }) => Math.max(max, to ?? from), first);
  const whole = Math.max(1, last - first);
  return (
    <Virtual
      count={spans.length}
      label="Spans of the session"
      row={(at, style) => {
        const { id, name, kind, tone, depth, from, to, note, event } = spans[at] as Span;
        const left = ((from - first) / whole) * 100;
        const width = Math.max(0, (((to ?? last) - from) / whole) * 100);
        return (
          <button
            type="button"
            key={id}
            class={`row span-row ${open === event ? 'selected' : ''}`}
            style={style}
            onClick={() => show(event)}
          >
            <span class="span-name" style={{ paddingLeft: `${depth * 14}px` }}>
              <Badge tone={tone}>{kind}</Badge> <Line text={name} />
            </span>
            <span class="track" title={note}>
              <i
                class={`bar ${kind} ${tone}`}
                style={{ left: `${Math.min(99.5, left)}%`, width: `${Math.min(width, 100 - left)}%` }}
              />
            </span>
            <span class="optional soft">{to === undefined ? 'open' : duration(to - from)}</span>
          </button>
        );
      }}
    />
  );
}

interface Message {
  readonly id: string;
  readonly role: string;
  readonly created_at: string;
}

function Conversation({ session, events }: { readonly session: string; readonly events: readonly LogEvent[] }) {
  // The transcript is read again when something was said.
  const said = events.filter(({ event }) => /message(_appended)?$|^task\.submitted$/.test(event)).length;
  const { value, error } = useLoad(
    () => all<Message>(`/v1/sessions/${session}/messages`, 10_000),
    `${session} ${said}`,
  );
  const [most, setMost] = useState(200);
  const turns = useMemo(() => turnsOf(events, value ?? []), [value, said]);
  if (value && turns.length === 0) return <Empty title="Nothing was said in this session" />;
  return (
    <div class="column">
      <Trouble thrown={error} />
      {turns.slice(0, most).map(({ id, role, at, text }) => (
        <div key={id} class={`turn ${role === 'user' ? 'person' : ''}`}>
          <p>
            <Line text={`${role} · ${dayAndTime(at)}`} />
          </p>
          <Block text={text} />
        </div>
      ))}
      {turns.length > most && (
        <button type="button" onClick={() => setMost(most + 500)}>
          Show more of {turns.length.toLocaleString('en')}
        </button>
      )}
    </div>
  );
}

interface Turn {
  readonly id: string;
  readonly role: string;
  readonly at: string;
  readonly text: string;
}

/** The transcript, and what each task was given, in the order in which they were said. */
function turnsOf(events: readonly LogEvent[], messages: readonly Message[]): readonly Turn[] {
  const given = events.flatMap(({ id, event, payload, created_at }) => {
    const input = event === 'task.submitted' ? bag(bag(payload.task).input) : {};
    const text = str(input.text) || messageText(input.message ?? input);
    return text ? [{ id, role: 'user', at: created_at, text }] : [];
  });
  const told = messages.map((message) => ({
    id: message.id,
    role: message.role,
    at: message.created_at,
    text: messageText(message),
  }));
  const seen = new Set<string>();
  return [...given, ...told]
    .filter(({ role, text }) => {
      const key = `${role} ${text}`;
      return text !== '' && !seen.has(key) && seen.add(key);
    })
    .sort((one, other) => (one.at < other.at ? -1 : 1));
}

interface Artifact {
  readonly id: string;
  readonly name?: string;
  readonly kind: string;
  readonly mime_type: string;
  readonly sha256?: string | null;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

function Files({ session, events }: { readonly session: string; readonly events: readonly LogEvent[] }) {
  const [most, setMost] = useState(50);
  const { value = [], error } = useLoad(() => all<Artifact>(`/v1/artifacts?session_id=${session}`), session);
  const files = useMemo(() => writtenFiles(events), [events.length]);
  return (
    <div class="column stack">
      <section class="card">
        <h2>Files changed</h2>
        {files.length === 0 && <p class="soft">None was reported or seen.</p>}
        {files.slice(0, most).map(({ event, path, operation, evidence, change }) => (
          <div key={event}>
            <p>
              <Link to={`/sessions/${session}?view=files&open=${event}`}>
                <code>
                  <Line text={path} />
                </code>
              </Link>{' '}
              <Badge tone="warn">{operation}</Badge> <Badge>{evidence}</Badge>{' '}
              <span class="soft">{change?.what ?? 'its content is not in the log, only its hash'}</span>
            </p>
            {change?.text && <Diff text={change.text} />}
          </div>
        ))}
        {files.length > most && (
          <button type="button" onClick={() => setMost(most + 100)}>
            Show more of {files.length.toLocaleString('en')}
          </button>
        )}
      </section>
      <section class="card">
        <h2>Artifacts</h2>
        <Trouble thrown={error} />
        {value.length === 0 && <p class="soft">None.</p>}
        {value.slice(0, most).map((artifact, at) => (
          <ArtifactBlock
            key={artifact.id}
            artifact={artifact}
            before={value.slice(0, at).findLast((one) => nameOf(one) !== '' && nameOf(one) === nameOf(artifact))}
          />
        ))}
      </section>
    </div>
  );
}

function nameOf({ name, metadata }: Artifact): string {
  return name ?? str(metadata?.name);
}

/** More of an artifact is downloaded, not shown. */
const MOST_SHOWN = 200_000;

/** The content of an artifact; of a file that is here twice, what changed since the one before. */
function ArtifactBlock({ artifact, before }: { readonly artifact: Artifact; readonly before: Artifact | undefined }) {
  const { id, kind, mime_type: type, sha256 } = artifact;
  const readable = /^text\/|json|patch|diff/.test(type);
  const isPatch = kind === 'patch' || /patch|diff/.test(type);
  const { value } = useLoad(
    async () => {
      const content = (one: string) => textAt(`/v1/artifacts/${one}/content`, MOST_SHOWN);
      const [now, then] = await Promise.all([
        readable ? content(id) : undefined,
        readable && before && !isPatch ? content(before.id) : undefined,
      ]);
      const changed = now !== undefined && then !== undefined;
      return { now, diff: changed ? fileDiff({ path: '', before: then, after: now }) : undefined };
    },
    `${id} ${before?.id ?? ''}`,
  );
  return (
    <div>
      <p>
        <b>
          <Line text={nameOf(artifact) || id} />
        </b>{' '}
        <Badge>{kind}</Badge> <span class="soft">{type}</span>{' '}
        <span class="soft mono">{(sha256 ?? '').slice(0, 23)}</span>{' '}
        {value?.diff && <span class="soft">{value.diff.what} since the one before</span>}
      </p>
      {value?.diff?.text ? (
        <Diff text={value.diff.text} />
      ) : isPatch && value?.now ? (
        <Diff text={value.now} />
      ) : (
        value?.now && <Block text={value.now} />
      )}
    </div>
  );
}

/** What translations could not carry of the work, each with the event that says so. */
function Losses({ events, show }: { readonly events: readonly LogEvent[]; readonly show: (event: string) => void }) {
  const found = useMemo(
    () => events.flatMap(({ id, payload }) => lossIn(payload as JsonObject).map((loss) => ({ id, ...loss }))),
    [events.length],
  );
  if (found.length === 0) return null;
  return (
    <details class="losses">
      <summary>Could not be carried: {[...new Set(found.map(({ aspect }) => aspect))].join(', ')}</summary>
      <ul>
        {found.map(({ id, aspect, why }, at) => (
          <li key={`${id} ${at}`}>
            <button type="button" class="link" onClick={() => show(id)}>
              {aspect}
            </button>{' '}
            {why}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Tokens and money by agent and model, each with the events that report them. */
function Cost({ session, events }: { readonly session: string; readonly events: readonly LogEvent[] }) {
  const sums = useMemo(() => usageBy(events), [events.length]);
  if (sums.length === 0) return <Empty title="No usage was reported in this session" />;
  return (
    <div class="column">
      <section class="card table-wrap" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th>Agent</th>
              <th>Model</th>
              <th class="n">Reports</th>
              <th class="n">Tokens in</th>
              <th class="n">Tokens out</th>
              <th class="n">Cost</th>
            </tr>
          </thead>
          <tbody>
            {sums.map(({ agent, model, reports, input, output, usd }) => (
              <tr key={`${agent} ${model}`}>
                <td>
                  <Line text={agent} />
                </td>
                <td>
                  <Line text={model} />
                </td>
                <td class="n">
                  <Link
                    to={`/activity?session=${session}&event=vendor.tollbridge.usage&caller=${encodeURIComponent(agent)}`}
                  >
                    {reports.toLocaleString('en')}
                  </Link>
                </td>
                <td class="n">{input.toLocaleString('en')}</td>
                <td class="n">{output.toLocaleString('en')}</td>
                <td class="n">{usd.toFixed(4)} USD</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}

function usageBy(events: readonly LogEvent[]) {
  const found = new Map<string, UsageSum>();
  const amount = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
  for (const { event, payload, actor } of events) {
    if (event !== 'vendor.tollbridge.usage') continue;
    const [agent, model] = [str(actor), [str(payload.provider), str(payload.model)].filter(Boolean).join(' ')];
    const key = `${agent} ${model}`;
    const sum = found.get(key) ?? { agent, model, reports: 0, input: 0, output: 0, usd: 0 };
    found.set(key, sum);
    sum.reports += 1;
    sum.input += amount(payload.input_tokens);
    sum.output += amount(payload.output_tokens);
    sum.usd += usdIn(payload);
  }
  return [...found.values()];
}

interface UsageSum {
  readonly agent: string;
  readonly model: string;
  reports: number;
  input: number;
  output: number;
  usd: number;
}

function usageIn(events: readonly LogEvent[]): string {
  const sums = usageBy(events);
  if (sums.length === 0) return '';
  const tokens = sums.reduce((sum, { input, output }) => sum + input + output, 0);
  const usd = sums.reduce((sum, one) => sum + one.usd, 0);
  return `${tokens.toLocaleString('en')} tokens${usd > 0 ? ` · ${usd.toFixed(4)} USD` : ''}`;
}

function Sessions() {
  const { value = [], error } = useLoad(() => all<Session>('/v1/sessions', 1000), 'sessions');
  return (
    <div class="page">
      <Title note={`${value.length} sessions`}>Sessions</Title>
      <Trouble thrown={error} />
      <div class="card table-wrap" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th>Session</th>
              <th>State</th>
              <th>Since</th>
            </tr>
          </thead>
          <tbody>
            {value.toReversed().map((session) => (
              <tr key={session.id}>
                <td>
                  <Link to={`/sessions/${session.id}`}>{session.id}</Link>
                </td>
                <td>{stateOf(session)}</td>
                <td>{dayAndTime(session.created_at)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
