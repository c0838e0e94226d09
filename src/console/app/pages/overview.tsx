/** The state of the gateway on one page. Every number leads to the rows it was counted from. */
import { useRef } from 'preact/hooks';
import { all, call, holds, type Me } from '../api.ts';
import { useFeed } from '../feed.ts';
import { Link } from '../router.tsx';
import { str, VERDICT_WORDS } from '../rows.ts';
import { countedSince, extendTally, type Measure, MINUTE_MS, median, type Tally } from '../tally.ts';
import { Badge, Count, duration, Empty, Line, Title, useLoad, useNow } from '../ui.tsx';
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
  const recent = Math.floor((now - HOUR) / MINUTE_MS) * MINUTE_MS;
  const tally = useRef<Tally | undefined>(undefined);
  tally.current = extendTally(tally.current, live);
  const counted = countedSince(tally.current, recent);
  const running = useLoad(
    () => (holds(me, 'tasks:read') ? all<Task>('/v1/tasks?status=WORKING', 500) : Promise.resolve([])),
    `running ${Math.floor(now / 5000)}`,
  );
  return (
    <div class="page">
      <Title note="the last hour, as far as this page has read the log">Overview</Title>
      <div class="numbers">
        <Figure to="/approvals" value={list.length} name="approvals pending" tone={list.length > 0 ? 'warn' : ''} />
        <Figure to="/activity?group=task&event=task.started" value={running.value?.length ?? 0} name="tasks running" />
        {VERDICTS.filter((verdict) => counted.verdicts.has(verdict) || verdict === 'allow' || verdict === 'block').map(
          (verdict) => (
            <Figure
              key={verdict}
              to={`/activity?verdict=${verdict}&since=${recent}`}
              value={counted.verdicts.get(verdict) ?? 0}
              name={`acts ${VERDICT_WORDS[verdict]}`}
              tone={verdict === 'block' && counted.verdicts.has('block') ? 'bad' : ''}
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
          <Plot tally={tally.current} now={now} />
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
        <Measured title="Agents and callers" filter="caller" rows={counted.callers} since={recent} />
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

/** Each number leads to the rows it was counted from. */
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
    <section class="card wide">
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p class="soft">No calls in the last hour.</p>
      ) : (
        <div class="table-wrap" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th class="n">Calls</th>
                <th class="n">Decisions</th>
                <th class="n">Blocked</th>
                <th class="n">Failed</th>
                <th class="n">Median time</th>
                <th class="n">Cost</th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, 12).map(({ name, calls, decisions, blocked, failed, times, usd }) => {
                const to = (more: string) =>
                  `/activity?${filter}=${encodeURIComponent(name)}&since=${since}${more && `&${more}`}`;
                const time = median(times);
                return (
                  <tr key={name}>
                    <td>
                      <Link to={to('')}>
                        <Line text={name} />
                      </Link>
                    </td>
                    <Count to={to('event=tool.requested')} value={calls} />
                    <Count to={to('group=decision')} value={decisions} />
                    <Count to={to('verdict=block')} value={blocked} />
                    <Count to={to('event=tool.failed')} value={failed} />
                    <Count to={to('event=tool.completed')} value={times.length} text={duration(time ?? Number.NaN)} />
                    <Count to={to('')} value={usd} text={`${usd.toFixed(4)} USD`} />
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

const NO_VERDICTS: ReadonlyMap<string, number> = new Map();

function Plot({ tally, now }: { readonly tally: Tally; readonly now: number }) {
  const minute = Math.floor(now / MINUTE_MS);
  const columns = Array.from(
    { length: MINUTES },
    (_, at) => tally.minutes.get(minute - MINUTES + 1 + at)?.verdicts ?? NO_VERDICTS,
  );
  const sums = columns.map((column) => [...column.values()].reduce((sum, value) => sum + value, 0));
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
            const height = ((column.get(verdict) ?? 0) / most) * 66;
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
                  <Link to="/activity?event=vendor.tollbridge.quota_used">
                    {name}: {String(used[name] ?? 0)} of {String(limit)}
                  </Link>
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
