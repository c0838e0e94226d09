/** A receipt in words: what was done, under which decision, and what it consumed. */
import { bag, str, VERDICT_WORDS } from '../../rows.ts';
import { dayAndTime, duration, Line, Table } from '../../ui.tsx';
import { type Bag, listOf } from './parts.tsx';

function momentOf(at: unknown): string {
  return str(at) && dayAndTime(str(at));
}

/** `wall_time_ms: 228` as people write it. */
function consumedText([name, value]: [string, unknown]): string {
  if (typeof value !== 'number') return `${name.replaceAll('_', ' ')} ${String(value)}`;
  if (name === 'wall_time_ms') return duration(value);
  if (name === 'usd') return `${value} USD`;
  const words = name.replaceAll('_', ' ');
  return `${value.toLocaleString('en')} ${value === 1 ? words.replace(/s$/, '') : words}`;
}

export function Readable({ receipt }: { readonly receipt: Bag }) {
  const ids = bag(receipt.identifiers);
  const {
    tool_calls: calls,
    fs_writes: writes,
    network_egress: sent,
    a2a_handoffs: handoffs,
  } = bag(receipt.side_effects);
  const lifecycle = bag(receipt.lifecycle);
  const consumed = bag(bag(receipt.autonomy_budget).consumed);
  const facts: readonly (readonly [string, string])[] = [
    ['Task', str(ids.task_id)],
    ['From, to', `${momentOf(lifecycle.started_at)} – ${momentOf(lifecycle.completed_at)}`],
    ['Failure', str(bag(lifecycle.failure).message)],
    [
      'Issued',
      `${momentOf(receipt.issued_at)} by ${str(bag(receipt.issuer).name)} ${str(bag(receipt.issuer).version)}`,
    ],
    ['Consumed', Object.entries(consumed).map(consumedText).join(' · ')],
    [
      'Files written',
      listOf(writes)
        .map(({ path }) => str(path))
        .join(', '),
    ],
    [
      'Sent to',
      listOf(sent)
        .map(({ destination, purpose }) => `${str(destination)} (${str(purpose)})`)
        .join(', '),
    ],
    [
      'Handed to',
      listOf(handoffs)
        .map((one) => str(one.target_agent) || str(one.agent))
        .join(', '),
    ],
  ];
  const answers = listOf(receipt.approvals);
  return (
    <>
      <dl class="facts">
        {facts
          .filter(([, value]) => value.trim() !== '')
          .flatMap(([name, value]) => [
            <dt key={`${name} name`}>{name}</dt>,
            <dd key={name}>
              <Line text={value} />
            </dd>,
          ])}
      </dl>
      <Table columns={['Act', 'Effect', 'Decision', 'Rule', 'Approved by', 'Evidence', 'Result']}>
        {listOf(calls)
          .slice(0, 500)
          .map((call) => {
            const about = bag(call.metadata);
            const answer = answers.find(({ approval_id: id }) => id === about.ask_id);
            const words = [
              call.tool,
              about.effect,
              VERDICT_WORDS[str(about.verdict)] ?? about.verdict,
              about.rule_id,
              answer && `${str(answer.actor)} (${str(answer.decision)})`,
              about.evidence,
              call.status,
            ];
            return (
              <tr key={str(call.call_id)}>
                {words.map((word, at) => (
                  <td key={String(at)}>
                    <Line text={str(word)} />
                  </td>
                ))}
              </tr>
            );
          })}
      </Table>
      {listOf(calls).length === 0 && <p class="soft">No act is on record.</p>}
    </>
  );
}
