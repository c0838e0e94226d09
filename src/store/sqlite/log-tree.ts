/** The stored Merkle tree over the log: its size so far, and its nodes. Nodes are never rewritten or pruned. */
import type { LogTree, LogTreeState, TreeNode } from '../../ports/index.ts';
import type { LogTreeRows } from '../engine/database.ts';
import type { Connection, Value } from './file/connection.ts';
import { nodePosition } from './receipts.ts';
import { insertMany } from './writing/insert.ts';

const PREFIX = 'sha256:';

/** Name in `meta` under which the last head of a tree is kept once its event is pruned. */
export const prunedHeadName = (object: string): string => `pruned_head:${object}`;

export function createLogTree(connection: Connection): LogTreeRows {
  const select = connection.prepare('SELECT first, size, frontier FROM log_tree');
  const selectNode = connection.prepare('SELECT lower(hex(hash)) FROM log_nodes WHERE place = ?');
  const put = connection.prepare('INSERT OR REPLACE INTO log_tree (one, first, size, frontier) VALUES (1, ?, ?, ?)');
  const meta = connection.prepare('SELECT value FROM meta WHERE name = ?');
  const putNodes = insertMany(connection, 'log_nodes', 2);

  function state(): LogTreeState {
    const found = select.get() as [number, number, string] | undefined;
    if (!found) return { first: undefined, size: 0, frontier: [] };
    return { first: found[0], size: found[1], frontier: JSON.parse(found[2]) as string[] };
  }

  return {
    state,
    nodes(wanted: readonly { level: number; index: number }[]): TreeNode[] {
      return wanted.flatMap(({ level, index }) => {
        const found = selectNode.get([nodePosition(level, index)]) as [string] | undefined;
        return found ? [{ level, index, hash: `${PREFIX}${found[0]}` }] : [];
      });
    },
    prunedHead: (object: string) => (meta.get([prunedHeadName(object)]) as [string] | undefined)?.[0],
    grow({ from, first, size, frontier, nodes }: Parameters<LogTree['grow']>[0]): boolean {
      if (state().size !== from) return false;
      const values: Value[] = [];
      for (const { level, index, bytes } of nodes)
        values.push(nodePosition(level, index), Buffer.from(bytes, 'latin1'));
      putNodes(values);
      put.run([first, size, JSON.stringify(frontier)]);
      return true;
    },
  };
}
