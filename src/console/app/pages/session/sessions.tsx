/** All sessions, newest first, or the tasks that run now. */
import { all, type Task } from '../../api.ts';
import { Link } from '../../router.tsx';
import { taskText } from '../../rows.ts';
import { Badge, dayAndTime, Empty, Line, Title, Trouble, useNewest, usePolled } from '../../ui.tsx';

export interface Session {
  readonly id: string;
  readonly status?: string;
  readonly state?: string;
  readonly created_at: string;
  readonly summary?: string | null;
}

export function stateOf({ status, state }: Session): string {
  return (status ?? state ?? '').toLowerCase();
}

export function Sessions() {
  const { loaded, rows, latest, error, more } = useNewest<Session>('session');
  return (
    <div class="page">
      <Title
        note="newest first"
        actions={
          <Link to="/sessions?tasks=running" class="button">
            Running tasks
          </Link>
        }
      >
        Sessions
      </Title>
      <Trouble thrown={error} />
      {loaded && rows.length === 0 && (
        <Empty title="No session yet">
          A session begins when a client talks to an agent. <Link to="/catalog">How to connect one</Link>
        </Empty>
      )}
      {rows.length > 0 && (
        <div class="card">
          <table class="stacks">
            <thead>
              <tr>
                <th>Session</th>
                <th>Agent</th>
                <th>State</th>
                <th>Since</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((session) => (
                <tr key={session.id}>
                  <td>
                    <Work task={latest[session.id]} else={session.summary ?? ''} />
                    <Link to={`/sessions/${session.id}`}>{session.id}</Link>
                  </td>
                  <td class="line">
                    <Line text={latest[session.id]?.assigned_agent_id ?? ''} />
                  </td>
                  <td class="line">
                    <Badge tone={stateOf(session) === 'active' ? 'info' : ''}>{stateOf(session)}</Badge>
                  </td>
                  <td class="line">{dayAndTime(session.created_at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more && (
        <button type="button" onClick={more}>
          Older sessions
        </button>
      )}
    </div>
  );
}

/** Tasks that run now, in any session. */
export function RunningTasks() {
  const { value = [], error } = usePolled(() => all<Task>('/v1/tasks?status=WORKING', MOST_RUNNING), 5000);
  return (
    <div class="page">
      <Title note={`${value.length} running`} actions={<Link to="/sessions">All sessions</Link>}>
        Running tasks
      </Title>
      <Trouble thrown={error} />
      {value.length === 0 && <Empty title="No task is running" />}
      {value.length > 0 && (
        <div class="card">
          <table class="stacks">
            <thead>
              <tr>
                <th>Task</th>
                <th>Agent</th>
                <th>Since</th>
              </tr>
            </thead>
            <tbody>
              {value.map((task) => (
                <tr key={task.id}>
                  <td>
                    <Work task={task} />
                    <Link to={`/sessions/${task.session_id}`}>{task.id}</Link>
                  </td>
                  <td class="line">
                    <Line text={task.assigned_agent_id ?? ''} />
                  </td>
                  <td class="line">{dayAndTime(task.created_at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

export const MOST_RUNNING = 500;

/** What a task was given, above the id that leads to it. */
function Work({ task, else: otherwise = '' }: { readonly task: Task | undefined; readonly else?: string }) {
  const text = taskText(task) || otherwise;
  return text ? (
    <p class="breaks">
      <Line text={text.slice(0, 160)} />
    </p>
  ) : null;
}
