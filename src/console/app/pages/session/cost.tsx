/** Tokens and money of a session. */
import { useMemo } from 'preact/hooks';
import { Link } from '../../router.tsx';
import { type LogEvent, str, usdIn } from '../../rows.ts';
import { Empty, Line, Table } from '../../ui.tsx';

/** Tokens and money by agent and model, each with the events that report them. */
export function Cost({ session, events }: { readonly session: string; readonly events: readonly LogEvent[] }) {
  const sums = useMemo(() => usageBy(events), [events.length]);
  if (sums.length === 0) return <Empty title="No usage was reported in this session" />;
  return (
    <div class="column">
      <Table card columns={['Agent', 'Model']} numbers={['Reports', 'Tokens in', 'Tokens out', 'Cost']}>
        {sums.map(({ agent, model, reports, input, output, usd }) => (
          <tr key={`${agent} ${model}`}>
            <td>
              <Line text={agent} />
            </td>
            <td>
              <Line text={model} />
            </td>
            <td class="n">
              <Link
                to={`/activity?session=${session}&event=vendor.tollbridge.usage&caller=${encodeURIComponent(agent)}`}
              >
                {reports.toLocaleString('en')}
              </Link>
            </td>
            <td class="n">{input.toLocaleString('en')}</td>
            <td class="n">{output.toLocaleString('en')}</td>
            <td class="n">{usd.toFixed(4)} USD</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function usageBy(events: readonly LogEvent[]) {
  const found = new Map<string, UsageSum>();
  const amount = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
  for (const { event, payload, actor } of events) {
    if (event !== 'vendor.tollbridge.usage') continue;
    const [agent, model] = [str(actor), [str(payload.provider), str(payload.model)].filter(Boolean).join(' ')];
    const key = `${agent} ${model}`;
    const sum = found.get(key) ?? { agent, model, reports: 0, input: 0, output: 0, usd: 0 };
    found.set(key, sum);
    sum.reports += 1;
    sum.input += amount(payload.input_tokens);
    sum.output += amount(payload.output_tokens);
    sum.usd += usdIn(payload);
  }
  return [...found.values()];
}

interface UsageSum {
  readonly agent: string;
  readonly model: string;
  reports: number;
  input: number;
  output: number;
  usd: number;
}

export function usageIn(events: readonly LogEvent[]): string {
  const sums = usageBy(events);
  if (sums.length === 0) return '';
  const tokens = sums.reduce((sum, { input, output }) => sum + input + output, 0);
  const usd = sums.reduce((sum, one) => sum + one.usd, 0);
  return `${tokens.toLocaleString('en')} tokens${usd > 0 ? ` · ${usd.toFixed(4)} USD` : ''}`;
}
