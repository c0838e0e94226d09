/**
 * `tollbridge mcp login`: a person signs in at a server for us, and from then on every client of that server is let in: after a
 * restart, and from several processes at once, with refresh tokens that are good for one use only.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createUpstream } from '../../../adapters/mcp/client/tool-backend.ts';
import { createSecrets, createSecretWriter, type VaultSource } from '../../../src/auth/vaults.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type { Logger } from '../../../src/ports/index.ts';
import { type Guarded, type GuardedOptions, openGuarded } from '../../support/mcp/sign-in-server.ts';
import { aDirectory, program } from '../../support/process/cli.ts';

const QUIET: Logger = { info() {}, warn() {}, error() {} };

async function opened(
  options: GuardedOptions = {},
  signIn = '{}',
): Promise<{ guarded: Guarded; dir: string; config: string }> {
  const guarded = await openGuarded(options);
  onTestFinished(() => guarded.close());
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  const text = `data: ${dir}/data\ntools:\n  search: { mcp: { url: "${guarded.url}", sign_in: ${signIn} } }\n  plain: { mcp: { url: "${guarded.upstream.url}" } }\n`;
  await writeFile(config, text);
  return { guarded, dir, config };
}

async function aFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A person with a browser: goes where the terminal says, and wherever that leads. */
async function signsIn(config: string, ...more: string[]) {
  const started = program(['--config', config, 'mcp', 'login', 'search', ...more]);
  const [, address = ''] = await started.says(/^ {2}(http\S+)$/m);
  const page = await fetch(address);
  const { code, out, err } = await started.ended;
  return { code, out: out.replaceAll(address, 'ADDRESS'), err, page: await page.text(), address: new URL(address) };
}

/** What a gateway or `tollbridge mcp` of this configuration has at that server, with a memory of its own. */
function user(dir: string, url: string) {
  const vaults: VaultSource[] = [
    {
      name: 'local',
      provider: 'file',
      path: join(dir, 'data/vaults/local.json'),
      key: { file: join(dir, 'data/vaults/local.key') },
    },
  ];
  const learned: string[] = [];
  const locations = { vaults, env: {}, learn: (value: string) => void learned.push(value) };
  const secretWriter = createSecretWriter({ ...locations, clock: systemClock });
  const deps = { log: QUIET, clock: systemClock, ids: createIds(), secret: createSecrets(locations), ...secretWriter };
  const tools = createUpstream('search', { url, sign_in: {} }, deps);
  onTestFinished(() => tools.close?.());
  const pass = async () => {
    const outcome = await tools.pass?.({ method: 'tools/list', params: {} }, AbortSignal.timeout(20_000));
    const { result, error } = outcome as { result?: { tools: { name: string }[] }; error?: { message: string } };
    return result ? result.tools.map(({ name }) => name) : error?.message;
  };
  return { pass, learned };
}

test('a person signs in, sees what happened, and nothing secret is shown', { timeout: 60_000 }, async () => {
  const { guarded, dir, config } = await opened();
  const before = user(dir, guarded.url);
  expect(await before.pass()).toBe(
    'the server does not accept our credentials; sign in there with: tollbridge mcp login search',
  );

  const { code, out, err, page, address } = await signsIn(config);
  expect([code, err, page]).toEqual([0, '', 'You can close this window.\n']);
  const base = guarded.url.replace('/mcp', '');
  expect(out).toBe(
    [
      `Signing in at ${guarded.url} for the server "search".`,
      'Go to this address with a browser:',
      '',
      '  ADDRESS',
      '',
      'Waiting for you to come back. Ctrl-C gives up.',
      `Signed in: ${base} gave us a token for "tools".`,
      'It is kept in a vault as mcp-search; a gateway that runs takes it up by itself.',
      '',
    ].join('\n'),
  );
  expect(Object.fromEntries(address.searchParams)).toMatchObject({
    response_type: 'code',
    code_challenge_method: 'S256',
    resource: guarded.url,
    scope: 'tools',
  });
  expect(address.searchParams.get('redirect_uri')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp\/signed-in$/);
  // The client that was refused before takes up the new token by itself.
  expect(await before.pass()).toEqual(['echo']);
  expect(await readFile(join(dir, 'data/vaults/local.json'), 'utf8')).not.toContain('access-');
  expect(before.learned.some((value) => value.startsWith('access-'))).toBe(true);
  expect(before.learned.some((value) => value.startsWith('refresh-'))).toBe(true);
});

test('refreshed tokens outlive the process, and two processes do not spend one token twice', {
  timeout: 60_000,
}, async () => {
  const { guarded, dir, config } = await opened();
  await signsIn(config);
  const [one, two] = [user(dir, guarded.url), user(dir, guarded.url)];
  expect([await one.pass(), await two.pass()]).toEqual([['echo'], ['echo']]);
  for (let round = 1; round <= 3; round += 1) {
    guarded.expire();
    expect(await Promise.all([one.pass(), two.pass(), one.pass(), two.pass()])).toEqual(Array(4).fill(['echo']));
    expect(guarded.seen.filter((what) => what === 'refreshed')).toHaveLength(round);
  }
  guarded.expire();
  expect(await user(dir, guarded.url).pass()).toEqual(['echo']);
  expect(guarded.seen.filter((what) => what.startsWith('a refresh token was used twice'))).toEqual([]);
});

test('signing in again replaces what there was, with the registration there is', { timeout: 60_000 }, async () => {
  const { guarded, config } = await opened({}, `{ redirect: "http://127.0.0.1:${await aFreePort()}/back" }`);
  await signsIn(config);
  expect((await signsIn(config)).code).toBe(0);
  expect(guarded.seen).toEqual(['registered a person', 'gave a token for /mcp', 'gave a token for /mcp']);
});

test('an answer from another authorization server is none, and neither is a refusal', { timeout: 60_000 }, async () => {
  const { config } = await opened({ iss: 'https://evil.example' });
  const mixed = await signsIn(config);
  expect(mixed.code).toBe(5);
  expect(mixed.err).toMatch(/^tollbridge: signing in at 127\.0\.0\.1:\d+ came to nothing: .*iss/i);

  const other = await opened({ refuses: true });
  const refused = await signsIn(other.config);
  expect([refused.code, refused.page]).toEqual([5, 'The sign-in was refused. You can close this window.\n']);
  expect(refused.err).toContain('tollbridge: sign-in refused: access_denied');
});

test('another caller’s answer is left standing outside, and the right one still counts', {
  timeout: 60_000,
}, async () => {
  const { config } = await opened();
  const started = program(['--config', config, 'mcp', 'login', 'search']);
  const [, address = ''] = await started.says(/^ {2}(http\S+)$/m);
  const back = new URL(address).searchParams.get('redirect_uri') as string;
  const forged = await fetch(`${back}?code=evil&state=guessed`);
  expect([forged.status, await forged.text()]).toEqual([
    400,
    'This is not the answer to what was asked. Nothing was taken.\n',
  ]);
  await fetch(address);
  expect((await started.ended).code).toBe(0);
});

test('with the browser elsewhere, the address it ended up at is pasted', { timeout: 60_000 }, async () => {
  const { guarded, dir, config } = await opened();
  const started = program(['--config', config, 'mcp', 'login', 'search', '--paste']);
  const [, address = ''] = await started.says(/^ {2}(http\S+)$/m);
  const { headers } = await fetch(address, { redirect: 'manual' });
  started.child.stdin.end(`what now?\n${headers.get('location')}\n`);
  const { code, out } = await started.ended;
  expect([code, out]).toEqual([0, expect.stringContaining('That is not an address.')]);
  expect(await user(dir, guarded.url).pass()).toEqual(['echo']);
});

test('a server nobody has to sign in at, one that is a command, and one that is not there', {
  timeout: 60_000,
}, async () => {
  const { config } = await opened();
  const said = async (server: string) => {
    const { code, err } = await program(['--config', config, 'mcp', 'login', server]).ended;
    return [code, err];
  };
  expect(await said('plain')).toEqual([
    2,
    'tollbridge: tools.plain.mcp does not say that a person signs in\n  fix: add to it: sign_in: {}\n',
  ]);
  expect(await said('nobody')).toEqual([3, expect.stringContaining('the configuration has no tools.nobody.mcp')]);
});
