/** Sign-ins of the console: a code opens one session in time, and a session is both of its secrets, under its host, until it ends. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  CONSOLE_SESSIONS,
  consoleToken,
  type NewConsoleSession,
  openConsoleSessions,
} from '../../../src/auth/console-sessions.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { fakeClock } from '../../support/gateway/clock.ts';

const HOST = '127.0.0.1:8420';
const MINUTE = 60_000;
const ANA = { id: 'ana', kind: 'person', scopes: ['tasks:read'] } as const;
const OPENED: NewConsoleSession = { host: HOST, how: 'key', actor: { ...ANA, scopes: [...ANA.scopes] } };

async function sessionsIn(keyActor: (id: string) => Promise<Actor | undefined> = async () => ({ ...ANA })) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-console-sessions-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const clock = fakeClock();
  return { dir, clock, sessions: openConsoleSessions({ files: dir, clock, keyActor }) };
}

test('a code opens one session, however many ask with it at once', async () => {
  const { dir, sessions } = await sessionsIn();
  const code = await sessions.createCode();
  const uses = await Promise.all(Array.from({ length: 5 }, () => sessions.useCode(code)));
  expect(uses.filter(Boolean)).toHaveLength(1);
  expect(await sessions.useCode(code)).toBe(false);
  expect(await sessions.useCode('')).toBe(false);
  expect(await readFile(join(dir, CONSOLE_SESSIONS), 'utf8')).not.toContain(code);
});

test('a code is worth nothing after ten minutes', async () => {
  const { clock, sessions } = await sessionsIn();
  const [early, late] = [await sessions.createCode(), await sessions.createCode()];
  clock.advance(10 * MINUTE - 1);
  expect(await sessions.useCode(early)).toBe(true);
  clock.advance(1);
  expect(await sessions.useCode(late)).toBe(false);
});

test('a session is found by both secrets under its host, and by nothing less', async () => {
  const { dir, sessions } = await sessionsIn();
  const { cookie, proof, session } = await sessions.open(OPENED);
  const other = await sessions.open(OPENED);
  expect((await sessions.find(cookie, proof, HOST))?.id).toBe(session.id);
  expect(await sessions.actor(consoleToken(cookie, proof))).toMatchObject({ id: 'ana', doors: ['harn', 'console'] });
  for (const [one, two, host] of [
    [cookie, other.proof, HOST],
    [other.cookie, proof, HOST],
    [cookie, '', HOST],
    ['', proof, HOST],
    [cookie, proof, 'evil.example:8420'],
    [cookie, proof, '127.0.0.1:8421'],
    [cookie, proof, undefined],
  ] as const) {
    expect(await sessions.find(one, two, host)).toBeUndefined();
  }
  const kept = await readFile(join(dir, CONSOLE_SESSIONS), 'utf8');
  for (const secret of [cookie, proof]) expect(kept).not.toContain(secret);
});

test('a session ends by time, by its id, with all others, and with its key', async () => {
  const revoked = new Set<string>();
  const { clock, sessions } = await sessionsIn(async (id) => (revoked.has(id) ? undefined : { ...ANA }));
  const holds = async ({ cookie, proof }: { cookie: string; proof: string }) =>
    (await sessions.find(cookie, proof, HOST)) !== undefined;
  const [timed, ended, keyed] = [
    await sessions.open(OPENED),
    await sessions.open(OPENED),
    await sessions.open({ ...OPENED, key_id: 'key_1' }),
  ];
  expect([await holds(timed), await holds(ended), await holds(keyed)]).toEqual([true, true, true]);
  expect(await sessions.end(ended.session.id)).toBe(1);
  revoked.add('key_1');
  expect([await holds(timed), await holds(ended), await holds(keyed)]).toEqual([true, false, false]);
  clock.advance(12 * 60 * MINUTE - 1);
  expect(await holds(timed)).toBe(true);
  clock.advance(1);
  expect(await holds(timed)).toBe(false);
  expect(await sessions.list()).toEqual([]);
  await sessions.open(OPENED);
  await sessions.open(OPENED);
  expect(await sessions.end()).toBe(2);
});
