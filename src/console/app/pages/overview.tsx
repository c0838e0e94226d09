/** The state of the gateway on one page. Every number leads to the rows it was counted from. */
import { useRef } from 'preact/hooks';
import { all, holds, type Me, type Task } from '../api.ts';
import { feed, useFeed } from '../live/feed.ts';
import { useWaiting } from '../live/waiting.ts';
import { Link } from '../router.tsx';
import { str, taskText, VERDICT_WORDS } from '../rows.ts';
import { countedSince, extendTally, MINUTE_MS, type Tally } from '../tally.ts';
import { duration, Line, Title, timeOf, useNow, usePolled } from '../ui.tsx';
import { aboutText } from './approvals/entry.tsx';
import { Budgets } from './overview/budgets.tsx';
import { HealthCard } from './overview/health.tsx';
import { Measured } from './overview/measured.tsx';
import { Plot, VERDICTS } from './overview/plot.tsx';
import { MOST_RUNNING } from './session/sessions.tsx';

const HOUR = 3_600_000;

export function Overview({ me }: { readonly me: Me }) {
  const live = useFeed();
  const { list } = useWaiting();
  const now = useNow(5000);
  const recent = Math.floor((now - HOUR) / MINUTE_MS) * MINUTE_MS;
  const tally = useRef<Tally | undefined>(undefined);
  tally.current = extendTally(tally.current, live);
  const counted = countedSince(tally.current, recent);
  const first = live.rows[0];
  /** A busy gateway has more events in an hour than are read at first. */
  const partial = live.mayHaveOlder && first !== undefined && first.at > recent;
  const running = usePolled(
    () => (holds(me, 'tasks:read') ? all<Task>('/v1/tasks?status=WORKING', MOST_RUNNING) : Promise.resolve([])),
    5000,
  );
  return (
    <div class="page">
      <Title
        note={partial ? `since ${timeOf(first.at)}: this page reads the newest events first` : 'the last hour'}
        actions={
          partial && (
            <button type="button" disabled={live.readingOlder} onClick={() => void feed.older(20_000)}>
              Read the hour before
            </button>
          )
        }
      >
        Overview
      </Title>
      <div class="numbers">
        <Figure to="/approvals" value={list.length} name="approvals pending" tone={list.length > 0 ? 'warn' : ''} />
        <Figure to="/sessions?tasks=running" value={running.value?.length ?? 0} name="tasks running" />
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
      <section class="card">
        <h2>Decisions per minute</h2>
        <Plot tally={tally.current} now={now} />
      </section>
      <div class="columns">
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
                      <Line text={str(ask.action.tool) || str(ask.request.question).slice(0, 60)} />{' '}
                      <Line text={aboutText(ask)} />
                    </Link>
                  </td>
                  <td class="soft cut">
                    <Line text={str(ask.action.actor)} />
                  </td>
                  <td class="n">{duration(now - Date.parse(ask.created_at))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <div class="stack">
          <section class="card">
            <h2>
              <Link to="/sessions?tasks=running">Running</Link>
            </h2>
            {(running.value ?? []).length === 0 && <p class="soft">No task is running.</p>}
            <table>
              <tbody>
                {(running.value ?? []).slice(0, 8).map((task) => (
                  <tr key={task.id}>
                    <td>
                      <Link to={`/sessions/${task.session_id}`}>
                        <Line text={taskText(task).slice(0, 80) || task.id} />
                      </Link>
                    </td>
                    <td class="n">{duration(now - Date.parse(task.created_at))}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
          <Budgets me={me} />
        </div>
        <HealthCard />
      </div>
      <div class="stack">
        <Measured title="Tools" filter="tool" rows={counted.tools} since={recent} />
        <Measured title="Agents and callers" filter="caller" rows={counted.callers} since={recent} />
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
