/** A write set as the parameters of the function that writes it: one list for each column. Knows the columns and nothing of what is in them. */

import type { Column, RowChange, WriteSet } from '../../engine/commit/write-set.ts';
import { FILTERS, filterOf } from '../../engine/filters.ts';
import type { Value } from '../connection/connections.ts';

/** In the order of the function's parameters. */
export function parametersOf(writeSet: WriteSet): Value[] {
  const [size = null, frontier = null] = writeSet.tree;
  const [positions, chains, numbers, ids, hashes, tasks, bodies] = apart(writeSet.receipts, 7);
  const [scopes, digests, results, times] = apart(writeSet.answers, 4);
  const [levels, indexes, nodes] = apart(writeSet.nodes, 3);
  return [
    ...apart(writeSet.resources, 3),
    ...apart(writeSet.locations, 5),
    ...apart(writeSet.words, 3),
    ...apart(writeSet.events, 5),
    ...apart(writeSet.stretches, 3),
    ...apart(writeSet.spans, 2),
    ...columnsOf(writeSet.rows),
    ...[positions!, chains!, numbers!, ids!, hashes!, tasks!, bodies!],
    ...[levels!.map((level, at) => nodePosition(level as number, indexes![at] as number)), nodes!, size, frontier],
    ...[scopes!, digests!, results!, times!],
  ];
}

/** How many parameters `parametersOf` gives. */
export const PARAMETERS = parametersOf({
  ...{ resources: [], locations: [], words: [], events: [], stretches: [], spans: [] },
  ...{ rows: [], receipts: [], nodes: [], tree: [], answers: [] },
}).length;

/** Key of a tree node: nodes completed at the same time lie next to each other. */
export function nodePosition(level: number, index: number): number {
  return (index + 1) * 2 ** level * 64 + level;
}

/** Flat values, `width` to a row, as one list for each column. */
function apart(values: readonly Column[], width: number): Column[][] {
  const columns: Column[][] = Array.from({ length: width }, () => []);
  for (let at = 0; at < values.length; at++) columns[at % width]!.push(values[at]!);
  return columns;
}

function columnsOf(rows: readonly RowChange[]): Column[][] {
  const columns: Column[][] = Array.from({ length: 10 }, () => []);
  for (const { object, id, born, row, body } of rows) {
    columns[0]!.push(object);
    columns[1]!.push(id);
    columns[2]!.push(born);
    for (const [at, name] of FILTERS.entries()) columns[at + 3]!.push(row ? filterOf(row, name) : null);
    columns[9]!.push(row ? body : null);
  }
  return columns;
}
