/** Receipts, their chains, the Merkle tree over all of them, and the tree over the log. Never pruned, never rewritten. */
import type { ReceiptQuery, TreeNode } from '../../../ports/index.ts';
import type { LogTreeRows, ReceiptBody, Receipts } from '../../engine/database.ts';
import type { Connections, Value } from '../connection/connections.ts';
import { filledIn } from '../schema/migrations.ts';
import { nodePosition } from '../writing/parameters.ts';

const COLUMNS = 'position, chain, number, hash, body';
const PREFIX = 'sha256:';
type Wanted = readonly { readonly level: number; readonly index: number }[];

export function createReceipts(connections: Connections, schema: string): Receipts {
  const sql = (text: string) => filledIn(text, schema);
  const TREE = sql('SELECT size, frontier FROM $S.tree');
  const GET = sql(`SELECT ${COLUMNS} FROM $S.receipts WHERE id = $1`);
  // Positions and numbers of a chain grow together, so one index gives a page of a long chain.
  const CHAIN = sql(
    `SELECT ${COLUMNS} FROM $S.receipts WHERE chain = $1 AND number > coalesce(
       (SELECT max(number) FROM $S.receipts WHERE chain = $1 AND position <= $2), -1) ORDER BY number LIMIT $3`,
  );
  const NODES = sql('SELECT place, hash FROM $S.tree_nodes WHERE place = ANY ($1::bigint[])');

  return {
    async tree() {
      const [found] = await connections.query(TREE);
      return found ? { size: found[0] as number, frontier: JSON.parse(found[1] as string) as string[] } : EMPTY;
    },
    async get(id) {
      const [found] = await connections.query(GET, [id]);
      return found && stored(found);
    },
    async list({ chain, index, task, after = -1, limit = 50 }: ReceiptQuery) {
      if (chain !== undefined && index === undefined && task === undefined) {
        return (await connections.query(CHAIN, [chain, after, limit])).map(stored);
      }
      const values: Value[] = [after];
      const terms = ['position > $1'];
      const where = (column: string, value: string | number | undefined): void => {
        if (value !== undefined) terms.push(`${column} = $${values.push(value)}`);
      };
      where('chain', chain);
      where('number', index);
      where('task_id', task);
      const text = `SELECT ${COLUMNS} FROM $S.receipts WHERE ${terms.join(' AND ')} ORDER BY position LIMIT $${values.push(limit)}`;
      return (await connections.query(sql(text), values)).map(stored);
    },
    nodes: async (wanted) =>
      nodesOf(wanted, await connections.query(NODES, [positionsOf(wanted)]), (hash) => hash as string),
  };
}

export function createLogTree(connections: Connections, schema: string): LogTreeRows {
  const sql = (text: string) => filledIn(text, schema);
  const STATE = sql('SELECT first, size, frontier FROM $S.log_tree');
  const NODES = sql("SELECT place, encode(hash, 'hex') FROM $S.log_nodes WHERE place = ANY ($1::bigint[])");
  const META = sql('SELECT value FROM $S.meta WHERE name = $1');
  const PUT_NODES = sql('INSERT INTO $S.log_nodes (place, hash) SELECT * FROM unnest($1::bigint[], $2::bytea[])');
  const PUT = sql(
    `INSERT INTO $S.log_tree (first, size, frontier) VALUES ($1, $2, $3)
     ON CONFLICT (one) DO UPDATE SET first = excluded.first, size = excluded.size, frontier = excluded.frontier`,
  );

  const state = async () => {
    const [found] = await connections.query(STATE);
    if (!found) return { first: undefined, size: 0, frontier: [] };
    return {
      first: found[0] as number,
      size: found[1] as number,
      frontier: JSON.parse(found[2] as string) as string[],
    };
  };
  return {
    state,
    nodes: async (wanted) =>
      nodesOf(wanted, await connections.query(NODES, [positionsOf(wanted)]), (hash) => `${PREFIX}${hash}`),
    prunedHead: async (object) =>
      (await connections.query(META, [prunedHeadName(object)]))[0]?.[0] as string | undefined,
    async grow({ from, first, size, frontier, nodes }) {
      if ((await state()).size !== from) return false;
      await connections.query(PUT_NODES, [positionsOf(nodes), nodes.map(({ bytes }) => Buffer.from(bytes, 'latin1'))]);
      await connections.query(PUT, [first, size, JSON.stringify(frontier)]);
      return true;
    },
  };
}

/** Name in `meta` under which the last head of a tree is kept once its event is pruned. */
export const prunedHeadName = (object: string): string => `pruned_head:${object}`;

const EMPTY = { size: 0, frontier: [] };
const positionsOf = (wanted: Wanted): number[] => wanted.map(({ level, index }) => nodePosition(level, index));

function nodesOf(
  wanted: Wanted,
  rows: readonly (readonly unknown[])[],
  hashOf: (value: unknown) => string,
): TreeNode[] {
  const found = new Map(rows.map(([position, hash]) => [position as number, hash]));
  return wanted.flatMap(({ level, index }) => {
    const hash = found.get(nodePosition(level, index));
    return hash === undefined ? [] : [{ level, index, hash: hashOf(hash) }];
  });
}

function stored(row: readonly unknown[]): ReceiptBody {
  const [position, chain, index, hash, body] = row as [number, string, number, string, string];
  return { position, chain, index, hash, body };
}
