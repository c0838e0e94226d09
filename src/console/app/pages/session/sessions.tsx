/** All sessions, newest first. */
import { all } from '../../api.ts';
import { Link } from '../../router.tsx';
import { dayAndTime, Table, Title, Trouble, useLoad } from '../../ui.tsx';

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
  const { value = [], error } = useLoad(() => all<Session>('/v1/sessions', 1000), 'sessions');
  return (
    <div class="page">
      <Title note={`${value.length} sessions`}>Sessions</Title>
      <Trouble thrown={error} />
      <Table card columns={['Session', 'State', 'Since']}>
        {value.toReversed().map((session) => (
          <tr key={session.id}>
            <td>
              <Link to={`/sessions/${session.id}`}>{session.id}</Link>
            </td>
            <td>{stateOf(session)}</td>
            <td>{dayAndTime(session.created_at)}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}
