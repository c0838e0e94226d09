/** Rules that approvals made for a while. */
import { all, call, holds, type Me } from '../../api.ts';
import { str } from '../../rows.ts';
import { Badge, dayAndTime, Line, useLoad } from '../../ui.tsx';

interface Grant {
  readonly id: string;
  readonly scope: string;
  readonly scope_value?: string | null;
  readonly action_pattern: string;
  readonly target_pattern: string;
  readonly allow: boolean;
  readonly expires_at?: string | null;
  readonly created_by?: string;
}

export function Grants({ me }: { readonly me: Me }) {
  const may = holds(me, 'permission_rules:read');
  const { value = [], again } = useLoad(
    () => (may ? all<Grant>('/v1/permissions/rules') : Promise.resolve([])),
    'grants',
  );
  if (!may) return null;
  return (
    <section class="card">
      <h2>Temporary rules from approvals</h2>
      {value.length === 0 && (
        <p class="soft">None. An approval that holds for a while appears here until it ends or is revoked.</p>
      )}
      <table>
        <tbody>
          {value.map((grant) => (
            <tr key={grant.id}>
              <td>
                <Badge tone={grant.allow ? 'good' : 'bad'}>{grant.allow ? 'allow' : 'deny'}</Badge>{' '}
                <Line text={`${grant.action_pattern} ${grant.target_pattern}`} />
              </td>
              <td class="soft">
                <Line text={`${grant.scope} ${grant.scope_value ?? ''}`} />
              </td>
              <td>{grant.expires_at ? `until ${dayAndTime(grant.expires_at)}` : 'no end'}</td>
              <td class="soft">
                <Line text={str(grant.created_by)} />
              </td>
              <td class="n">
                {holds(me, 'permission_rules:write') && (
                  <button
                    type="button"
                    onClick={() => void call(`/v1/permissions/rules/${grant.id}`, { method: 'DELETE' }).then(again)}
                  >
                    Revoke
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
