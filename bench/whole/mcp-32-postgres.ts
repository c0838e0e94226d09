/**
 * What a gateway on PostgreSQL gets done: `tools/call` of an echo by 32 clients, decided, recorded and receipted. Beside it the rows that
 * these calls left in the database, as many of the same length, inserted by bare `pg` in transactions of as many rows as one of ours had.
 * Needs no server: one comes from npm, as in the tests.
 */
import pg from 'pg';
import { createDatabase, PASSWORD, USER } from '../../test/support/postgres/server.ts';
import { echoCommand, startLoad, startOurs } from '../mcp/side.ts';
import { median } from '../native/side.ts';
import type { Measured } from '../run.ts';

export const name = 'mcp-32-postgres';

const CLIENTS = 32;
const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 600);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const WARM_MS = ROUND_MS * 5;

/** Rows written so far, their length, and transactions that wrote some. */
interface Written {
  readonly rows: number;
  readonly chars: number;
  readonly commits: number;
}
interface Round {
  readonly calls: number;
  readonly callsMs: number;
  readonly rows: number;
  readonly rowsMs: number;
  readonly rowsPerCommit: number;
}

export async function run(): Promise<readonly Measured[]> {
  const database = await createDatabase();
  const client = new pg.Client({
    ...{ host: '127.0.0.1', port: database.port, user: USER, password: PASSWORD, database: database.name },
  });
  await client.connect();
  await client.query('CREATE TABLE bare (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT NOT NULL)');
  const command = [...(await echoCommand()), '--stdio'];
  const ours = await startOurs({ echo: { command, share: true } }, [], {
    section: { url: database.url, secret: 'store' },
    env: { TOLLBRIDGE_SECRET_store: PASSWORD },
  });
  const load = startLoad();
  try {
    const { port, token } = ours;
    await load.open({ name: 'ours', port, path: '/mcp/echo', connections: CLIENTS, era: 'legacy', token: token! });
    await load.run('ours', WARM_MS);
    const rounds: Round[] = [];
    for (let at = 0; at < ROUNDS; at += 1) {
      const before = await written(client);
      const { calls, ms } = await load.run('ours', ROUND_MS);
      const after = await written(client);
      const rows = after.rows - before.rows;
      const rowsPerCommit = Math.max(1, Math.round(rows / (after.commits - before.commits)));
      const rowsMs = await bare(client, rows, Math.round((after.chars - before.chars) / rows), rowsPerCommit);
      rounds.push({ calls, callsMs: ms, rows, rowsMs, rowsPerCommit });
    }
    const of = (figure: (round: Round) => number) => median(rounds.map(figure));
    return [
      {
        bench: name,
        ratio: Number(of((round) => round.rowsMs / round.callsMs).toFixed(3)),
        against:
          'the same number and length of rows through bare transactions of one multi-row INSERT, as many rows in each',
        calls_per_second: Math.round(of(({ calls, callsMs }) => (calls * 1_000) / callsMs)),
        rows_per_call: Number(of(({ rows, calls }) => rows / calls).toFixed(1)),
        rows_per_commit: Math.round(of((round) => round.rowsPerCommit)),
        bare_rows_per_second: Math.round(of(({ rows, rowsMs }) => (rows * 1_000) / rowsMs)),
      },
    ];
  } finally {
    load.close();
    await ours.close();
    await client.end();
    await database.drop();
  }
}

/** Every table of the log counts, changed rows as much as new ones. */
async function written(client: pg.Client): Promise<Written> {
  // Statistics are kept by each connection until it is idle.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  const { rows } = await client.query({
    rowMode: 'array',
    text: `SELECT (SELECT sum(n_tup_ins + n_tup_upd)::float8 FROM pg_stat_user_tables WHERE schemaname = 'tollbridge'
                     AND relname NOT IN ('state', 'writers')),
             (SELECT coalesce(sum(length(body)), 0)::float8 FROM tollbridge.events)
               + (SELECT coalesce(sum(length(body)), 0)::float8 FROM tollbridge.rows)
               + (SELECT coalesce(sum(length(body)), 0)::float8 FROM tollbridge.receipts),
             (SELECT generation::float8 FROM tollbridge.state)`,
  });
  const [[count, chars, commits]] = rows as [[number, number, number]];
  return { rows: count, chars, commits };
}

async function bare(client: pg.Client, rows: number, chars: number, batch: number): Promise<number> {
  const text = 'x'.repeat(chars);
  const began = performance.now();
  for (let left = rows; left > 0; left -= batch) {
    await client.query('BEGIN');
    await client.query('INSERT INTO bare (body) SELECT * FROM unnest($1::text[])', [
      Array.from({ length: Math.min(left, batch) }, () => text),
    ]);
    await client.query('COMMIT');
  }
  return performance.now() - began;
}
