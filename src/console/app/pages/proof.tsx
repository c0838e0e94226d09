/** Receipts and the tree that holds them. One receipt is checked here in the browser. */
import { all, call } from '../api.ts';
import { Link } from '../router.tsx';
import { bag, str } from '../rows.ts';
import { dayAndTime, Empty, Title, Trouble, useLoad } from '../ui.tsx';
import { listOf, Outcome, type ReceiptRow } from './proof/parts.tsx';
import { OneReceipt } from './proof/receipt.tsx';
import { TreeAndWitnesses } from './proof/tree.tsx';

export function Proof({ id, query }: { readonly id: string; readonly query: URLSearchParams }) {
  const task = query.get('task') ?? '';
  const { value, error } = useLoad(async () => {
    const rows = await all<ReceiptRow>(`/v1/receipts${task ? `?task_id=${task}` : ''}`, MOST);
    // One that is further on than the list goes.
    return !id || rows.some((one) => one.id === id) ? rows : [...rows, await call<ReceiptRow>(`/v1/receipts/${id}`)];
  }, `receipts ${task} ${id}`);
  if (error)
    return (
      <div class="page">
        <Trouble thrown={error} />
      </div>
    );
  if (!value) return <div class="page" aria-busy="true" />;
  const found = value.find((one) => one.id === id);
  if (id && !found)
    return (
      <div class="page">
        <Empty title="There is no such receipt" />
      </div>
    );
  if (found) return <OneReceipt key={id} row={found} others={value} />;
  return <Receipts rows={value} task={task} />;
}

function countOf(calls: number): string {
  return calls === 1 ? '1 call' : `${calls} calls`;
}

/** More of them are read with `tollbridge export`. */
const MOST = 5000;

function Receipts({ rows, task }: { readonly rows: readonly ReceiptRow[]; readonly task: string }) {
  return (
    <div class="page">
      <Title
        note={`${rows.length < MOST ? rows.length : `the first ${rows.length}`} ${rows.length === 1 ? 'receipt' : 'receipts'}${task && ' of one task'}`}
        actions={task && <Link to="/proof">All receipts</Link>}
      >
        Proof
      </Title>
      {rows.length === 0 ? (
        <Empty title="No receipt yet">A receipt is issued when a task ends.</Empty>
      ) : (
        <div class="stack">
          <section class="card">
            <table class="stacks">
              <thead>
                <tr>
                  <th>Receipt</th>
                  <th>Outcome</th>
                  <th>Calls</th>
                  <th>Issued</th>
                  <th>Hash</th>
                </tr>
              </thead>
              <tbody>
                {rows.toReversed().map(({ id, wire: { payload }, created_at }) => (
                  <tr key={id}>
                    <td>
                      <Link to={`/proof/${id}`}>{id}</Link>
                    </td>
                    <td>
                      <Outcome receipt={payload} />
                    </td>
                    <td>{countOf(listOf(bag(payload.side_effects).tool_calls).length)}</td>
                    <td>{dayAndTime(created_at)}</td>
                    <td class="mono soft">{str(bag(payload.chain).receipt_hash).slice(7, 23)}…</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
          <TreeAndWitnesses rows={rows} whole={rows.length < MOST && !task} />
        </div>
      )}
    </div>
  );
}
