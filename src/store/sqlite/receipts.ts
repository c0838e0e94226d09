/** Receipts, their chains, and the Merkle tree over all of them. Never pruned, never rewritten. */
import type { Receipt } from '../../model/receipt.ts';
import type { ChainHead, ReceiptQuery, StoredReceipt, TreeNode } from '../../ports.ts';
import type { Connection, Value } from './connection.ts';

export interface Receipts {
  head(chain: string): ChainHead;
  get(id: string): StoredReceipt | undefined;
  list(query: ReceiptQuery): StoredReceipt[];
  tree(): ChainHead['tree'];
  nodes(wanted: readonly { level: number; index: number }[]): TreeNode[];
}

type Columns = [number, string, number, string, string];

export function createReceipts(connection: Connection): Receipts {
  const columns = 'position, chain, number, hash, body';
  const selectHead = connection.prepare(
    'SELECT number, hash FROM receipts WHERE chain = ? ORDER BY number DESC LIMIT 1',
  );
  const selectTree = connection.prepare('SELECT size, frontier FROM tree');
  const selectNode = connection.prepare('SELECT hash FROM tree_nodes WHERE level = ? AND number = ?');
  const select = connection.prepare(`SELECT ${columns} FROM receipts WHERE id = ?`);

  function tree(): ChainHead['tree'] {
    const found = selectTree.get() as [number, string] | undefined;
    return found ? { size: found[0], frontier: JSON.parse(found[1]) as string[] } : { size: 0, frontier: [] };
  }

  return {
    tree,
    head(chain) {
      const last = selectHead.get([chain]) as [number, string] | undefined;
      return last
        ? { previous: last[1], index: last[0] + 1, tree: tree() }
        : { previous: null, index: 0, tree: tree() };
    },
    get(id) {
      const found = select.get([id]) as Columns | undefined;
      return found && stored(found);
    },
    list({ chain, index, task, after, limit = 50 }) {
      const terms = ['position > ?'];
      const params: Value[] = [after ?? -1];
      if (chain !== undefined) {
        terms.push('chain = ?');
        params.push(chain);
      }
      if (index !== undefined) {
        terms.push('number = ?');
        params.push(index);
      }
      if (task !== undefined) {
        terms.push('task_id = ?');
        params.push(task);
      }
      const sql = `SELECT ${columns} FROM receipts WHERE ${terms.join(' AND ')} ORDER BY position LIMIT ?`;
      return (connection.prepare(sql).all([...params, limit]) as Columns[]).map(stored);
    },
    nodes(wanted) {
      return wanted.flatMap(({ level, index }) => {
        const found = selectNode.get([level, index]) as [string] | undefined;
        return found ? [{ level, index, hash: found[0] }] : [];
      });
    },
  };
}

function stored([position, chain, index, hash, body]: Columns): StoredReceipt {
  return { position, chain, index, hash, receipt: JSON.parse(body) as Receipt };
}
