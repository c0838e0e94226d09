import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { createAuthenticator } from '../../../src/auth/authenticate.ts';
import { asFault } from '../../../src/model/faults.ts';
import { fakeClock } from '../../support/gateway/clock.ts';

async function runtime() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-auth-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const clock = fakeClock();
  return {
    dir,
    clock,
    keys: openApiKeys(dir, clock),
    authenticate: createAuthenticator({ clock, files: dir, localToken: 'local-token-for-this-process' }),
    file: join(dir, 'auth', 'api-keys.json'),
  };
}

const bot = {
  id: 'bot',
  kind: 'service',
  tenant_id: 'acme',
  workspaces: ['workspace_1'],
  scopes: ['tasks:read'],
} as const;
const wanted = { name: 'for the bot', actor: { ...bot, workspaces: [...bot.workspaces], scopes: [...bot.scopes] } };

async function kindOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (thrown) {
    return asFault(thrown).kind;
  }
  return 'fine';
}

test('a key speaks for its actor, with what that actor may see and do', async () => {
  const { keys, authenticate } = await runtime();
  const { key, record } = await keys.create(wanted);
  expect(key).toMatch(/^tbk_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  expect(record.state).toBe('active');
  expect(await authenticate(key)).toEqual(bot);
});

test('the file holds no key, is private, and lists what may be known', async () => {
  const { keys, dir, file } = await runtime();
  const { key } = await keys.create(wanted);
  const secret = key.split('_').at(-1)!;
  const text = await readFile(file, 'utf8');
  expect(text).not.toContain(secret);
  expect(text).not.toContain(key);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await stat(join(dir, 'auth'))).mode & 0o777).toBe(0o700);
  const listed = await keys.list();
  expect(listed).toHaveLength(1);
  expect(listed[0]).toMatchObject({ name: 'for the bot', actor: bot, expires_at: null, revoked_at: null });
  expect(JSON.stringify(listed)).not.toContain('hash');
  expect(await readdir(join(dir, 'auth'))).toEqual(['api-keys.json']);
});

test('revoked, expired, altered and unknown keys are refused', async () => {
  const { keys, authenticate, clock } = await runtime();
  const first = await keys.create(wanted);
  const second = await keys.create({ ...wanted, expires_at: '2026-01-01T01:00:00.000Z' });
  expect((await authenticate(second.key)).id).toBe('bot');
  await keys.revoke(first.record.id);
  expect(await kindOf(authenticate(first.key))).toBe('unauthenticated');
  // Only the client that holds the whole key hears what became of it.
  const details = (token: string) => authenticate(token).catch((cause) => cause.details);
  expect(await details(first.key)).toEqual({ reason: 'revoked' });
  expect(await details(first.key.slice(0, -1) + (first.key.endsWith('A') ? 'B' : 'A'))).toBeUndefined();
  clock.advance(60 * 60 * 1000);
  expect(await kindOf(authenticate(second.key))).toBe('unauthenticated');
  expect(await details(second.key)).toEqual({ reason: 'expired' });
  await expect(authenticate(second.key)).rejects.toThrow(
    'this API key expired at 2026-01-01T01:00:00.000Z; ask for a new one (tollbridge keys create)',
  );
  expect((await keys.list()).map(({ state }) => state)).toEqual(['revoked', 'expired']);

  const third = await keys.create(wanted);
  const altered = third.key.slice(0, -1) + (third.key.endsWith('A') ? 'B' : 'A');
  for (const token of [altered, `${third.key}x`, third.key.toUpperCase(), 'tbk_', '', undefined, 'nobody']) {
    expect(await kindOf(authenticate(token)), String(token)).toBe('unauthenticated');
  }
  expect(await kindOf(keys.revoke('0000000000000000'))).toBe('not_found');
});

test('a key made or revoked elsewhere counts at once', async () => {
  const { dir, clock, authenticate } = await runtime();
  const elsewhere = openApiKeys(dir, clock);
  const { key, record } = await elsewhere.create(wanted);
  expect((await authenticate(key)).id).toBe('bot');
  await elsewhere.revoke(record.id);
  expect(await kindOf(authenticate(key))).toBe('unauthenticated');
});

test('keys made at the same time are all kept', async () => {
  const { dir, clock } = await runtime();
  const many = await Promise.all(
    Array.from({ length: 8 }, (_, at) => openApiKeys(dir, clock).create({ ...wanted, name: `key ${at}` })),
  );
  const names = (await openApiKeys(dir, clock).list()).map(({ name }) => name).toSorted();
  expect(names).toEqual(many.map(({ record }) => record.name).toSorted());
});

test('a file others can read, or that does not add up, lets nobody in and is not written over', async () => {
  const { keys, authenticate, file } = await runtime();
  const { key } = await keys.create(wanted);
  await chmod(file, 0o644);
  const fresh = createAuthenticator({ clock: fakeClock(), files: join(file, '..', '..') });
  expect(await kindOf(fresh(key))).toBe('unavailable');
  await chmod(file, 0o600);
  await writeFile(file, '{"format":"something else"}');
  expect(await kindOf(authenticate(key))).toBe('unavailable');
  expect(await kindOf(keys.create(wanted))).toBe('unavailable');
  expect(await readFile(file, 'utf8')).toBe('{"format":"something else"}');
});

test('the local token is everything at this machine and no person; nothing else is', async () => {
  const { authenticate } = await runtime();
  expect(await authenticate('local-token-for-this-process')).toEqual({ id: 'local', kind: 'service', scopes: ['*'] });
  expect(await kindOf(authenticate('local-token-for-this-proces'))).toBe('unauthenticated');
  expect(await kindOf(authenticate('x'.repeat(100_000)))).toBe('unauthenticated');
  const none = createAuthenticator({ clock: fakeClock() });
  for (const token of [undefined, '', 'undefined', 'tbk_0000000000000000_'.padEnd(64, 'a')]) {
    expect(await kindOf(none(token))).toBe('unauthenticated');
  }
});

test('no message ever holds the token it is about', async () => {
  const { authenticate } = await runtime();
  const token = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.';
  const fault = await authenticate(token).catch(asFault);
  expect(JSON.stringify([(fault as Error).message, (fault as { details?: unknown }).details])).not.toContain('eyJ');
});

test.each(['local', 'LOCAL', ' local ', 'local:ana', 'system:gateway', 'agent:demo', 'oauth:https://i#ana', 'ｌocal'])(
  'no key is made in the name of a part of the gateway (%s), and one that stands in the file is nobody',
  async (id) => {
    const { keys, authenticate, file } = await runtime();
    expect(await kindOf(keys.create({ name: 'x', actor: { ...wanted.actor, id } }))).toBe('invalid_request');
    const { key } = await keys.create(wanted);
    await writeFile(file, (await readFile(file, 'utf8')).replace('"id": "bot"', `"id": ${JSON.stringify(id)}`));
    expect(await kindOf(authenticate(key))).toBe('unauthenticated');
  },
);

test('a key limited to doors is refused at another, in the words for a wrong key', async () => {
  const { keys, authenticate } = await runtime();
  const { key, record } = await keys.create({
    ...wanted,
    actor: { ...wanted.actor, doors: ['a2a'] },
    preset: 'a2a-peer',
  });
  expect(record).toMatchObject({ preset: 'a2a-peer', actor: { doors: ['a2a'] } });
  expect(await authenticate(key, { door: 'a2a' })).toMatchObject({ id: 'bot' });
  const at = (door: string) => authenticate(key, { door }).catch((cause) => [cause.kind, cause.message, cause.details]);
  const unknown = authenticate('tbk_0000000000000000_'.padEnd(64, 'a'), { door: 'harn' });
  const nobody = await unknown.catch((cause) => [cause.kind, cause.message, cause.details]);
  for (const door of ['harn', 'mcp', 'runs', 'acp', 'ahp']) expect(await at(door)).toEqual(nobody);
});
