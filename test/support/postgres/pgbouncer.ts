/** PgBouncer in transaction mode, where this machine has it: Debian's package `pgbouncer`, for example. */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from '../eventually.ts';
import { freePort } from '../free-port.ts';
import type { Pooler } from './pooler.ts';
import { PASSWORD, USER } from './server.ts';

/** Its path; undefined where it is not installed. */
export const pgbouncer = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin']
  .map((dir) => join(dir, 'pgbouncer'))
  .find(existsSync);

const ADMIN = 'pgbouncer';

export async function startPgBouncer(
  to: number,
  database: string,
  size: number,
  ignored: readonly string[] = [],
): Promise<Pooler> {
  const dir = mkdtempSync(join(tmpdir(), 'tb-pgbouncer-'));
  // As root it refuses to run, so then it is another user who reads this.
  chmodSync(dir, 0o755);
  const port = await freePort();
  const file = join(dir, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]
${database} = host=127.0.0.1 port=${to} dbname=${database} user=${USER} password=${PASSWORD}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
admin_users = ${ADMIN}
pool_mode = transaction
server_round_robin = 1
default_pool_size = ${size}
min_pool_size = ${size}
max_client_conn = 200
ignore_startup_parameters = ${ignored.join(',')}
`,
  );
  const as = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn(pgbouncer!, [...as, file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await eventually(() => {
    if (child.exitCode !== null) throw new Error(`PgBouncer did not start: ${said}`);
    return asked(port, 'SHOW VERSION').then(Boolean, () => false);
  }, 'PgBouncer');
  return {
    port,
    /** Of its connections to the server, how often one was given to a client: less the first time of each. */
    async moves() {
      const stats = await asked(port, 'SHOW STATS_TOTALS');
      const mine = stats.find((row) => row.database === database);
      return Number(mine?.xact_count ?? 0) - size;
    },
    async close() {
      child.kill('SIGQUIT');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function asked(port: number, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: ADMIN, database: 'pgbouncer', password: '' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
