/** A receipt in words: what was done, under which decision, and what it consumed. */
import { bag, str } from '../../rows.ts';
import { Line, Table } from '../../ui.tsx';
import { type Bag, listOf } from './parts.tsx';

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
    ['From, to', `${str(lifecycle.started_at)} – ${str(lifecycle.completed_at)}`],
    ['Failure', str(bag(lifecycle.failure).message)],
    ['Issued', `${str(receipt.issued_at)} by ${str(bag(receipt.issuer).name)} ${str(bag(receipt.issuer).version)}`],
    [
      'Consumed',
      Object.entries(consumed)
        .map(([name, value]) => `${name} ${String(value)}`)
        .join(' · '),
    ],
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
              about.verdict,
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
