/** The health of what the gateway depends on. */
import { call } from '../../api.ts';
import { Badge, Line, Trouble, usePolled } from '../../ui.tsx';

interface Part {
  readonly kind: string;
  readonly name: string;
  readonly state: string;
  readonly detail: string | null;
}

/** What is known of a part that has not been used yet is nothing, and nothing is said against it. */
const WORDS: Readonly<Record<string, string>> = { ready: 'ok', unknown: 'not used yet' };
const TONES: Readonly<Record<string, string>> = { ready: 'good', unavailable: 'bad', slow: 'warn', starting: 'warn' };

export function HealthCard() {
  const { value, error } = usePolled(() => call<{ data: readonly Part[] }>('/console/api/health'), 10_000);
  const parts = value?.data ?? [];
  return (
    <section class="card health" aria-label="Health">
      <h2>Health</h2>
      <Trouble thrown={error} />
      <table>
        <tbody>
          {parts.map(({ kind, name, state, detail }) => (
            <tr key={`${kind} ${name} ${detail}`}>
              <td>
                <span class="soft">{kind}</span>{' '}
                <span class="breaks">
                  <Line text={name} />
                </span>
                {detail && (
                  <p class="soft breaks">
                    <Line text={detail} />
                  </p>
                )}
              </td>
              <td class="n">
                <Badge tone={TONES[state] ?? ''}>{WORDS[state] ?? state}</Badge>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
