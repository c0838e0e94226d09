/** Receipts, their chains, and the Merkle tree over all of them. Never pruned, never rewritten. */
import type { ChainHead, ReceiptQuery, TreeNode } from '../../ports/index.ts';
import type { ReceiptBody } from '../engine/database.ts';
import type { Connection, Value } from './file/connection.ts';

/** Key of a tree node in its table: nodes completed at the same time lie next to each other. */
export function nodePosition(level: number, index: number): number {
  return (index + 1) * 2 ** level * 64 + level;
}

type Columns = [number, string, number, string, string];

export function createReceipts(connection: Connection) {
  const columns = 'position, chain, number, hash, body';
  const selectHead = connection.prepare(
    'SELECT number, hash FROM receipts WHERE chain = ? ORDER BY number DESC LIMIT 1',
  );
  const selectTree = connection.prepare('SELECT size, frontier FROM tree');
  const selectNode = connection.prepare('SELECT hash FROM tree_nodes WHERE place = ?');
  const selectPosition = connection.prepare('SELECT position FROM receipts WHERE chain = ? AND number = ?');
  const selectChain = connection.prepare(
    `SELECT ${columns} FROM receipts WHERE chain = ? AND number >= ? ORDER BY number LIMIT ?`,
  );
  const select = connection.prepare(`SELECT ${columns} FROM receipts WHERE id = ?`);

  function tree(): ChainHead['tree'] {
    const found = selectTree.get() as [number, string] | undefined;
    return found ? { size: found[0], frontier: JSON.parse(found[1]) as string[] } : { size: 0, frontier: [] };
  }

  /** The first number of a chain behind a position. Both grow together, so a binary search finds it. */
  function numberBehind(chain: string, position: number): number {
    let low = 0;
    let high = (lastOf(chain)?.[0] ?? -1) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((selectPosition.get([chain, middle]) as [number])[0] > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  function lastOf(chain: string): [number, string] | undefined {
    return selectHead.get([chain]) as [number, string] | undefined;
  }

  return {
    tree,
    head(chain: string): ChainHead {
      const last = lastOf(chain);
      return last
        ? { previous: last[1], index: last[0] + 1, tree: tree() }
        : { previous: null, index: 0, tree: tree() };
    },
    get(id: string): ReceiptBody | undefined {
      const found = select.get([id]) as Columns | undefined;
      return found && stored(found);
    },
    list({ chain, index, task, after, limit = 50 }: ReceiptQuery): ReceiptBody[] {
      if (chain !== undefined && index === undefined && task === undefined) {
        const from = after === undefined ? 0 : numberBehind(chain, after);
        return (selectChain.all([chain, from, limit]) as Columns[]).map(stored);
      }
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
    nodes(wanted: readonly { level: number; index: number }[]): TreeNode[] {
      return wanted.flatMap(({ level, index }) => {
        const found = selectNode.get([nodePosition(level, index)]) as [string] | undefined;
        return found ? [{ level, index, hash: found[0] }] : [];
      });
    },
  };
}

function stored([position, chain, index, hash, body]: Columns): ReceiptBody {
  return { position, chain, index, hash, body };
}
