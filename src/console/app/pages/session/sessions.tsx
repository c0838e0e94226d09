/** All sessions, newest first. */
import { Link } from '../../router.tsx';
import { dayAndTime, Empty, Line, Title, Trouble, useNewest } from '../../ui.tsx';

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
  const { loaded, rows, error, more } = useNewest<Session>('session');
  return (
    <div class="page">
      <Title note="newest first">Sessions</Title>
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
                <th>State</th>
                <th>Since</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((session) => (
                <tr key={session.id}>
                  <td>
                    <Link to={`/sessions/${session.id}`}>{session.id}</Link>
                    {session.summary && (
                      <p class="soft breaks">
                        <Line text={session.summary.slice(0, 160)} />
                      </p>
                    )}
                  </td>
                  <td>{stateOf(session)}</td>
                  <td>{dayAndTime(session.created_at)}</td>
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
