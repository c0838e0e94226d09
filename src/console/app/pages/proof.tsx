/** Receipts, newest first, and the tree that holds them. One receipt is checked here in the browser. */
import { all, call } from '../api.ts';
import { Link } from '../router.tsx';
import { bag, str } from '../rows.ts';
import { dayAndTime, Empty, Line, Title, Trouble, useLoad, useNewest } from '../ui.tsx';
import { type Bag, listOf, Outcome, type ReceiptRow } from './proof/parts.tsx';
import { OneReceipt } from './proof/receipt.tsx';
import { TreeAndWitnesses } from './proof/tree.tsx';

export function Proof({ id, query }: { readonly id: string; readonly query: URLSearchParams }) {
  const task = query.get('task') ?? '';
  if (id) return <ReceiptById key={id} id={id} />;
  return task ? <ReceiptsOf task={task} /> : <AllReceipts />;
}

function ReceiptById({ id }: { readonly id: string }) {
  const { value, error } = useLoad(() => call<ReceiptRow>(`/v1/receipts/${encodeURIComponent(id)}`), id);
  if (value) return <OneReceipt row={value} />;
  return (
    <div class="page" aria-busy={!error}>
      <Trouble thrown={error} />
      {error !== undefined && (
        <p>
          <Link to="/proof">All receipts</Link>
        </p>
      )}
    </div>
  );
}

function AllReceipts() {
  const { loaded, rows, error, more } = useNewest<ReceiptRow>('receipt');
  return (
    <div class="page">
      <Title note="a signed account of each task that has ended, newest first">Proof</Title>
      <Trouble thrown={error} />
      {loaded && rows.length === 0 && <Empty title="No receipt yet">A receipt is issued when a task ends.</Empty>}
      {rows.length > 0 && (
        <div class="stack">
          <Receipts rows={rows} more={more} />
          <TreeAndWitnesses />
        </div>
      )}
    </div>
  );
}

function ReceiptsOf({ task }: { readonly task: string }) {
  const { value, error } = useLoad(() => all<ReceiptRow>(`/v1/receipts?task_id=${encodeURIComponent(task)}`), task);
  return (
    <div class="page">
      <Title note={`receipts of ${task}`} actions={<Link to="/proof">All receipts</Link>}>
        Proof
      </Title>
      <Trouble thrown={error} />
      {value?.length === 0 && <Empty title="No receipt yet">A receipt is issued when the task ends.</Empty>}
      {value && value.length > 0 && <Receipts rows={value.toReversed()} more={undefined} />}
    </div>
  );
}

/** The acts of a receipt by name, the most frequent first. */
function actsOf(receipt: Bag): string {
  const counts = new Map<string, number>();
  for (const { tool } of listOf(bag(receipt.side_effects).tool_calls)) {
    counts.set(str(tool), (counts.get(str(tool)) ?? 0) + 1);
  }
  const named = [...counts].sort(([, one], [, other]) => other - one);
  const shown = named.slice(0, MOST_NAMED).map(([tool, count]) => (count > 1 ? `${tool} (${count})` : tool));
  const others = named.length - shown.length;
  return [...shown, ...(others > 0 ? [`and ${others} more`] : [])].join(', ') || 'none';
}

const MOST_NAMED = 3;

function Receipts({ rows, more }: { readonly rows: readonly ReceiptRow[]; readonly more: (() => void) | undefined }) {
  return (
    <section class="card">
      <table class="stacks">
        <thead>
          <tr>
            <th>Receipt</th>
            <th>Outcome</th>
            <th>Acts</th>
            <th>Issued</th>
            <th>Hash</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, wire: { payload }, created_at }) => (
            <tr key={id}>
              <td>
                <Link to={`/proof/${id}`}>{id}</Link>
              </td>
              <td>
                <Outcome receipt={payload} />
              </td>
              <td>
                <Line text={actsOf(payload)} />
              </td>
              <td>{dayAndTime(created_at)}</td>
              <td class="mono soft">{str(bag(payload.chain).receipt_hash).slice(7, 23)}…</td>
            </tr>
          ))}
        </tbody>
      </table>
      {more && (
        <button type="button" onClick={more}>
          Older receipts
        </button>
      )}
    </section>
  );
}
