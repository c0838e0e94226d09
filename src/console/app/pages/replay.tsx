/** Runs an ended task again, from its record or with other answers. */
import { all, type Me, type Task } from '../api.ts';
import { Link } from '../router.tsx';
import { taskText } from '../rows.ts';
import { Badge, dayAndTime, Empty, Line, Title, Trouble, useLoad, useNewest } from '../ui.tsx';
import { Compare, ENDED } from './replay/compare.tsx';
import { Start } from './replay/start.tsx';

export function Replay({ me, id, query }: { readonly me: Me; readonly id: string; readonly query: URLSearchParams }) {
  if (id && query.get('with')) return <Compare source={id} replay={query.get('with') ?? ''} />;
  if (id) return <Start me={me} id={id} />;
  return <Tasks session={query.get('session') ?? ''} />;
}

function Tasks({ session }: { readonly session: string }) {
  return session ? <TasksOf session={session} /> : <AllTasks />;
}

function TasksOf({ session }: { readonly session: string }) {
  const { value, error } = useLoad(() => all<Task>(`/v1/tasks?session_id=${session}`, 2000), `tasks ${session}`);
  return <TaskList loaded={value !== undefined} tasks={(value ?? []).toReversed()} error={error} />;
}

function AllTasks() {
  const { loaded, rows, error, more } = useNewest<Task>('task');
  return <TaskList loaded={loaded} tasks={rows} error={error} more={more} />;
}

function TaskList({
  loaded,
  tasks,
  error,
  more,
}: {
  readonly loaded: boolean;
  readonly tasks: readonly Task[];
  readonly error: unknown;
  readonly more?: (() => void) | undefined;
}) {
  const ended = tasks.filter(({ status }) => ENDED.includes(status));
  return (
    <div class="page">
      <Title note="choose a task that has ended, newest first">Replay</Title>
      <Trouble thrown={error} />
      {loaded && ended.length === 0 && (
        <Empty title="No task has ended yet">A task that has ended can be run again from its record.</Empty>
      )}
      {ended.length > 0 && (
        <div class="card">
          <table class="stacks">
            <tbody>
              {ended.map((task) => (
                <tr key={task.id}>
                  <td>
                    <Link to={`/replay/${task.id}`}>{task.id}</Link>
                    <p class="soft breaks">
                      <Line text={taskText(task).slice(0, 160)} />
                    </p>
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
      {more && (
        <button type="button" onClick={more}>
          Older tasks
        </button>
      )}
    </div>
  );
}
