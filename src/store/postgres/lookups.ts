/** The rows that decisions read: all that a batch asks for with one call. */

import type { ChainHead } from '../../ports/index.ts';
import { createRemoteLookups, type Wanted } from '../engine/commit/remote-lookups.ts';
import type { StoredHead } from '../engine/database.ts';
import type { Connections } from './connection/connections.ts';
import { leaseKey } from './leases.ts';
import { filledIn } from './schema/migrations.ts';

type Found = [
  ...[kind: number, n: number, a: number | null, b: number | null, c: number | null],
  ...[t: string | null, u: string | null, v: string | null],
];
interface MutableHead extends StoredHead {
  readonly locations: StoredHead['locations'][number][];
}

export function createLookups(connections: Connections, schema: string) {
  const LOAD = filledIn('SELECT * FROM $S.load_1($1, $2, $3, $4, $5, $6, $7)', schema);

  async function load({ rows, heads, answers, chains, leases }: Wanted) {
    // The columns of the function.
    const found = (await connections.query(LOAD, [
      ...[rows.map(({ object }) => object), rows.map(({ id }) => id)],
      ...[heads.map(({ object }) => object), heads.map(({ id }) => id)],
      ...[answers, chains, leases.map(leaseKey)],
    ])) as unknown as Found[];
    const bodies: (string | null)[] = rows.map(() => null);
    const stored: (MutableHead | undefined)[] = heads.map(() => undefined);
    const first: ({ digest: string; result: string | null } | undefined)[] = answers.map(() => undefined);
    const ends = chains.map(() => ({ previous: null as string | null, index: 0 }));
    const epochs = leases.map(() => 0);
    let tree: ChainHead['tree'] = { size: 0, frontier: [] };
    for (const [kind, n, a, b, c, t, u, v] of found) {
      const at = n - 1;
      if (kind === 1) bodies[at] = t;
      else if (kind === 2) stored[at] = { number: a!, sequence: b!, stretch: c!, locations: [] };
      else if (kind === 3) stored[at]!.locations.push({ number: a!, task_id: t!, session_id: u!, workspace_id: v! });
      else if (kind === 4) first[at] = { digest: t!, result: u };
      else if (kind === 5) ends[at] = { previous: t, index: a! + 1 };
      else if (kind === 6) tree = { size: a!, frontier: JSON.parse(t!) as string[] };
      else epochs[at] = a!;
    }
    return {
      ...{ rows: bodies, heads: stored, answers: first, epochs },
      chains: ends.map((end): ChainHead => ({ ...end, tree })),
    };
  }
  return createRemoteLookups(load);
}
