/**
 * What an instrumented upstream writes down: every act it saw, with the newest position of the log at that moment. Plain
 * JavaScript, so that a child process can use it without a build.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';

const logs = new Map();

export function newestPosition(dataDir) {
  const path = join(dataDir, 'log.db');
  let log = logs.get(path);
  if (!log) {
    if (!existsSync(path)) return 0;
    log = new Database(path, { readonly: true });
    logs.set(path, log);
  }
  return log.prepare('SELECT max(position) FROM events').raw(true).get()?.[0] ?? 0;
}

export function recordContact(file, dataDir, contact) {
  appendFileSync(file, `${JSON.stringify({ ...contact, after: newestPosition(dataDir) })}\n`);
}

export function readContacts(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

/** For a test that removes the data directory: a log that stays open would keep its descriptors. */
export function forgetLogs() {
  for (const log of logs.values()) log.close();
  logs.clear();
}
