/** API keys, without their values. */
import { Link } from '../../router.tsx';
import { str } from '../../rows.ts';
import { Badge, dayAndTime, Line } from '../../ui.tsx';

export interface Key {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly actor: {
    readonly id: string;
    readonly kind: string;
    readonly scopes: readonly string[];
    readonly doors?: readonly string[];
  };
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

export function Keys({ keys }: { readonly keys: readonly Key[] }) {
  return (
    <section class="card">
      <h2>API keys</h2>
      {keys.length === 0 && <p class="soft">None. On this machine the printed token is enough.</p>}
      <div class="table-wrap" tabIndex={0}>
        <table>
          <tbody>
            {keys.map(({ id, name, state, actor, expires_at, last_used_at }) => (
              <tr key={id}>
                <td>
                  <b>
                    <Line text={name} />
                  </b>{' '}
                  <span class="soft mono">{id}</span>
                </td>
                <td>
                  <Badge tone={state === 'active' ? 'good' : 'bad'}>{state}</Badge>
                </td>
                <td>
                  <Link to={`/activity?person=${encodeURIComponent(actor.id)}`}>
                    <Line text={`${actor.kind} ${actor.id}`} />
                  </Link>
                </td>
                <td class="soft">
                  <Line text={actor.scopes.join(' ')} />{' '}
                  {actor.doors && <Line text={`at ${str(actor.doors.join(', '))}`} />}
                </td>
                <td class="soft">
                  {last_used_at ? `last used ${dayAndTime(last_used_at)}` : 'not used since the gateway started'}
                </td>
                <td class="n soft">{expires_at ? `until ${dayAndTime(expires_at)}` : 'no end'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
