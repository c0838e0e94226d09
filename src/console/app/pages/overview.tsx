/** The state of the gateway on one page. Every number leads to the rows it was counted from. */
import { useMemo } from 'preact/hooks';
import { all, call, holds, type Me } from '../api.ts';
import { useFeed } from '../feed.ts';
import { Link } from '../router.tsx';
import { type EventRow, str, VERDICT_WORDS } from '../rows.ts';
import { Badge, duration, Empty, Line, Title, useLoad, useNow } from '../ui.tsx';
import { useWaiting } from '../waiting.ts';

interface Task {
  readonly id: string;
  readonly session_id: string;
  readonly status: string;
  readonly created_at: string;
  readonly agent?: string | null;
}
interface Quota {
  readonly id: string;
  readonly name?: string;
  readonly limits: Readonly<Record<string, number>>;
  readonly used?: Readonly<Record<string, number>>;
  readonly usage?: Readonly<Record<string, number>>;
}
interface Health {
  readonly ok: boolean;
  readonly version: string;
  readonly dependencies:
    | Readonly<Record<string, unknown>>
    | readonly { readonly name: string; readonly ok?: boolean; readonly status?: string }[];
}

const HOUR = 3_600_000;
const MINUTES = 30;
const VERDICTS = ['allow', 'escalate', 'modify', 'defer', 'block'] as const;

export function Overview({ me }: { readonly me: Me }) {
  const live = useFeed();
  const { list } = useWaiting();
  const now = useNow(5000);
  const since = now - HOUR;
  const counted = useMemo(() => count(live.rows, since), [live.rows.length, live.epoch, Math.floor(now / 5000)]);
  const running = useLoad(
    () => (holds(me, 'tasks:read') ? all<Task>('/v1/tasks?status=WORKING', 500) : Promise.resolve([])),
    `running ${Math.floor(now / 5000)}`,
  );
  const recent = Math.floor(since / 60_000) * 60_000;
  return (
    <div class="page">
      <Title note="the last hour, as far as this page has read the log">Overview</Title>
      <div class="numbers">
        <Figure to="/approvals" value={list.length} name="approvals pending" tone={list.length > 0 ? 'warn' : ''} />
        <Figure to="/activity?group=task&event=task.started" value={running.value?.length ?? 0} name="tasks running" />
        {VERDICTS.filter((verdict) => counted.verdicts[verdict] || verdict === 'allow' || verdict === 'block').map(
          (verdict) => (
            <Figure
              key={verdict}
              to={`/activity?verdict=${verdict}&since=${recent}`}
              value={counted.verdicts[verdict] ?? 0}
              name={`acts ${VERDICT_WORDS[verdict]}`}
              tone={verdict === 'block' && counted.verdicts.block ? 'bad' : ''}
            />
          ),
        )}
        <Figure
          to={`/activity?event=tool.failed&since=${recent}`}
          value={counted.failed}
          name="calls failed"
          tone={counted.failed > 0 ? 'bad' : ''}
        />
      </div>
      <div class="grid">
        <section class="card wide">
          <h2>Decisions per minute</h2>
          <Plot rows={live.rows} now={now} version={live.version} />
        </section>
        <section class="card">
          <h2>
            <Link to="/approvals">Waiting for a person</Link>
          </h2>
          {list.length === 0 && <p class="soft">Nothing waits.</p>}
          <table>
            <tbody>
              {list.slice(0, 8).map((ask) => (
                <tr key={ask.id}>
                  <td>
                    <Link to={`/approvals/${ask.id}`}>
                      <Line text={str(ask.action.tool) || str(ask.request.question).slice(0, 60)} />
                    </Link>
                  </td>
                  <td class="soft">
                    <Line text={str(ask.action.actor)} />
                  </td>
                  <td class="n">{duration(now - Date.parse(ask.created_at))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <section class="card">
          <h2>Running</h2>
          {(running.value ?? []).length === 0 && <p class="soft">No task is running.</p>}
          <table>
            <tbody>
              {(running.value ?? []).slice(0, 8).map((task) => (
                <tr key={task.id}>
                  <td>
                    <Link to={`/sessions/${task.session_id}`}>
                      <Line text={task.agent ?? task.id} />
                    </Link>
                  </td>
                  <td class="n">{duration(now - Date.parse(task.created_at))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <Measured title="Tools" filter="tool" rows={counted.tools} since={recent} />
        <Measured title="Agents and callers" filter="person" rows={counted.agents} since={recent} />
        <Budgets me={me} />
        <HealthCard me={me} />
      </div>
    </div>
  );
}

function Figure({
  to,
  value,
  name,
  tone = '',
}: {
  readonly to: string;
  readonly value: number;
  readonly name: string;
  readonly tone?: string;
}) {
  return (
    <Link to={to} class="card number">
      <b class={tone}>{value.toLocaleString('en')}</b>
      <span>{name}</span>
    </Link>
  );
}

interface Measure {
  readonly name: string;
  calls: number;
  failed: number;
  blocked: number;
  readonly times: number[];
}

function count(rows: readonly EventRow[], since: number) {
  const verdicts: Record<string, number> = {};
  const tools = new Map<string, Measure>();
  const agents = new Map<string, Measure>();
  const began = new Map<string, number>();
  let failed = 0;
  const of = (map: Map<string, Measure>, name: string) => {
    const known = map.get(name) ?? { name, calls: 0, failed: 0, blocked: 0, times: [] };
    map.set(name, known);
    return known;
  };
  // From the newest back: rows older than the hour are not read.
  let first = rows.length;
  while (first > 0 && (rows[first - 1] as EventRow).at >= since) first -= 1;
  for (let at = first; at < rows.length; at += 1) {
    const row = rows[at] as EventRow;
    if (row.verdict) {
      verdicts[row.verdict] = (verdicts[row.verdict] ?? 0) + 1;
      const who = row.agent || row.person;
      if (who) {
        const agent = of(agents, who);
        agent.calls += 1;
        if (row.verdict === 'block') agent.blocked += 1;
      }
      if (row.tool && row.verdict === 'block') of(tools, row.tool).blocked += 1;
    }
    const key = `${row.task} ${row.tool}`;
    if (row.event === 'tool.requested') {
      of(tools, row.tool).calls += 1;
      began.set(key, row.at);
    }
    if (row.event === 'tool.completed' || row.event === 'tool.failed') {
      const from = began.get(key);
      if (from !== undefined) of(tools, row.tool).times.push(row.at - from);
      if (row.event === 'tool.failed') {
        failed += 1;
        of(tools, row.tool).failed += 1;
      }
    }
  }
  const sorted = (map: Map<string, Measure>) => [...map.values()].sort((a, b) => b.calls - a.calls).slice(0, 8);
  return { verdicts, failed, tools: sorted(tools), agents: sorted(agents) };
}

function middle(times: readonly number[]): string {
  if (times.length === 0) return '';
  const sorted = times.toSorted((a, b) => a - b);
  return duration(sorted[Math.floor(sorted.length / 2)] as number);
}

function Measured({
  title,
  filter,
  rows,
  since,
}: {
  readonly title: string;
  readonly filter: string;
  readonly rows: readonly Measure[];
  readonly since: number;
}) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p class="soft">No calls in the last hour.</p>
      ) : (
        <div class="table-wrap" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th class="n">{filter === 'tool' ? 'Calls' : 'Decisions'}</th>
                <th class="n">{filter === 'tool' ? 'Failed' : 'Blocked'}</th>
                {filter === 'tool' && <th class="n">Median</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.name}>
                  <td>
                    <Link to={`/activity?${filter}=${encodeURIComponent(row.name)}&since=${since}`}>
                      <Line text={row.name} />
                    </Link>
                  </td>
                  <td class="n">{row.calls}</td>
                  <td class="n">{filter === 'tool' ? row.failed : row.blocked}</td>
                  {filter === 'tool' && <td class="n">{middle(row.times)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Plot({
  rows,
  now,
  version,
}: {
  readonly rows: readonly EventRow[];
  readonly now: number;
  readonly version: number;
}) {
  const minute = Math.floor(now / 60_000);
  const columns = useMemo(() => {
    const found = Array.from({ length: MINUTES }, () => ({}) as Record<string, number>);
    for (let at = rows.length - 1; at >= 0; at -= 1) {
      const row = rows[at] as EventRow;
      const age = minute - Math.floor(row.at / 60_000);
      if (age >= MINUTES) break;
      const column = row.verdict ? found[MINUTES - 1 - age] : undefined;
      if (column) column[row.verdict] = (column[row.verdict] ?? 0) + 1;
    }
    return found;
  }, [minute, Math.floor(version / 3)]);
  const sums = columns.map((column) => Object.values(column).reduce((sum, value) => sum + value, 0));
  const most = Math.max(1, ...sums);
  const total = sums.reduce((sum, value) => sum + value, 0);
  return (
    <>
      <svg
        class="plot"
        viewBox={`0 0 ${MINUTES * 10} 70`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${total} decisions in the last ${MINUTES} minutes, at most ${most} in one`}
      >
        <title>{`at most ${most} in one minute`}</title>
        {columns.map((column, at) => {
          let top = 70;
          return VERDICTS.map((verdict) => {
            const height = ((column[verdict] ?? 0) / most) * 66;
            top -= height;
            return height > 0 ? (
              <rect key={`${at} ${verdict}`} class={`v-${verdict}`} x={at * 10 + 1} y={top} width="8" height={height} />
            ) : null;
          });
        })}
      </svg>
      <p class="legend">
        {VERDICTS.map((verdict) => (
          <span key={verdict}>
            <i class={`v-${verdict}`} />
            {VERDICT_WORDS[verdict]}
          </span>
        ))}
        <span>
          {total} in {MINUTES} minutes, at most {most} in one
        </span>
      </p>
    </>
  );
}

function Budgets({ me }: { readonly me: Me }) {
  const { value = [] } = useLoad(
    () => (holds(me, 'quotas:read') ? all<Quota>('/v1/quotas', 200) : Promise.resolve([])),
    'quotas',
  );
  if (value.length === 0) return null;
  return (
    <section class="card">
      <h2>Budgets</h2>
      {value.map((quota) => {
        const used = quota.used ?? quota.usage ?? {};
        return (
          <div key={quota.id}>
            <b>
              <Line text={quota.name ?? quota.id} />
            </b>
            {Object.entries(quota.limits ?? {}).map(([name, limit]) => {
              const part = Math.min(1, (used[name] ?? 0) / Math.max(1e-9, limit));
              return (
                <div key={name}>
                  <span class="soft">
                    {name}: {String(used[name] ?? 0)} of {String(limit)}
                  </span>
                  <div class="meter">
                    <i class={part > 0.9 ? 'bad' : ''} style={{ width: `${part * 100}%` }} />
                  </div>
                </div>
              );
            })}
          </div>
        );
      })}
    </section>
  );
}

function HealthCard({ me }: { readonly me: Me }) {
  const { value, error } = useLoad(
    () => (holds(me, 'tasks:read') ? call<Health>('/health/deps') : Promise.reject(new Error('hidden'))),
    'health',
  );
  if (error && !value) return null;
  const parts = Array.isArray(value?.dependencies)
    ? value.dependencies.map((one) => [one.name, one.ok ?? one.status === 'ok'] as const)
    : Object.entries(value?.dependencies ?? {}).map(
        ([name, state]) =>
          [
            name,
            typeof state === 'object' && state !== null
              ? (state as { ok?: boolean }).ok !== false
              : state === 'ok' || state === true,
          ] as const,
      );
  return (
    <section class="card">
      <h2>Health</h2>
      {!value && <Empty title="…" />}
      <table>
        <tbody>
          {parts.map(([name, well]) => (
            <tr key={name}>
              <td>
                <Line text={name} />
              </td>
              <td class="n">
                <Badge tone={well ? 'good' : 'bad'}>{well ? 'well' : 'in trouble'}</Badge>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
