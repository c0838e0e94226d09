/** Budgets and how much of each is used. */
import { all, holds, type Me } from '../../api.ts';
import { Link } from '../../router.tsx';
import { Line, useLoad } from '../../ui.tsx';

interface Quota {
  readonly id: string;
  readonly name?: string;
  readonly limits: Readonly<Record<string, number>>;
  readonly used?: Readonly<Record<string, number>>;
  readonly usage?: Readonly<Record<string, number>>;
}

/** `tool_calls` as people write it. */
function limitName(name: string): string {
  return name === 'usd' ? 'USD' : name.replaceAll('_', ' ');
}

export function Budgets({ me }: { readonly me: Me }) {
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
                    <Line text={limitName(name)} />: {String(used[name] ?? 0)} of {String(limit)}
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
