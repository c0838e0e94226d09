/** `tollbridge mcp login --as` and `mcp logout`: a sign-in of one caller, made and ended at a terminal. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { mcp } from '../../../adapters/mcp/index.ts';
import { createSecrets, createSecretWriter, type VaultSource } from '../../../src/auth/vaults.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type { PartContext } from '../../../src/ports/index.ts';
import { type Accounts, openAccounts } from '../../support/mcp/accounts.ts';
import { WHOAMI } from '../../support/mcp/callers.ts';
import { aDirectory, program } from '../../support/process/cli.ts';

/** The tools that a gateway of this configuration, without a port, finds for a caller. */
async function toolsOf(dir: string, { url }: Accounts, id: string) {
  const path = join(dir, 'data/vaults/local');
  const vaults: VaultSource[] = [
    { name: 'local', provider: 'file', path: `${path}.json`, key: { file: `${path}.key` } },
  ];
  const locations = { vaults, env: {}, learn() {} };
  const writer = createSecretWriter({ ...locations, clock: systemClock });
  const log = { info() {}, warn() {}, error() {} };
  const deps = {
    name: 'github',
    log,
    clock: systemClock,
    ids: createIds(),
    secret: createSecrets(locations),
    ...writer,
  };
  const tools = mcp.parts.tools.open({ url, sign_in: { per: 'caller' } }, deps as unknown as PartContext);
  onTestFinished(() => tools.close?.());
  const own = tools.forCaller?.({ id, kind: 'person', scopes: [] });
  const names = ((await own?.list()) ?? []).map(({ name }) => name);
  const refused = await own?.requireListed?.('anything').catch((thrown: Error) => thrown.message);
  return { names, refused };
}

test('a caller is signed in and out by name, and no other caller is', { timeout: 60_000 }, async () => {
  const accounts = await openAccounts(WHOAMI);
  onTestFinished(() => accounts.close());
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  const section = `{ mcp: { url: "${accounts.url}", sign_in: { per: caller } } }`;
  await writeFile(config, `data: ${dir}/data\ntools:\n  github: ${section}\n`);
  const run = (...args: string[]) => program(['--config', config, 'mcp', ...args]);

  const unnamed = await run('login', 'github').ended;
  expect([unnamed.code, unnamed.err]).toEqual([2, expect.stringContaining('--as PRINCIPAL')]);

  const login = run('login', 'github', '--as', 'ann', '--no-browser');
  const [, address = ''] = await login.says(/^ {2}(http\S+)$/m);
  await fetch(`${address}&account=ann@github`);
  const { code, out, err } = await login.ended;
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('as ann');
  expect(out).toContain('It is kept in a vault as mcp-github.ann');
  expect(await toolsOf(dir, accounts, 'ann')).toEqual({ names: ['whoami'], refused: undefined });
  expect(await toolsOf(dir, accounts, 'bob')).toEqual({
    names: ['sign_in'],
    refused: 'github is used with an account of bob, who has to sign in first: tollbridge mcp login github --as bob',
  });

  expect((await run('logout', 'github', '--as', 'bob').ended).code).toBe(3);
  const ended = await run('logout', 'github', '--as', 'ann').ended;
  expect([ended.code, ended.out]).toEqual([
    0,
    'Signed out at github. Its authorization server has revoked the tokens.\n',
  ]);
  expect(accounts.revoked).toHaveLength(2);
  expect((await toolsOf(dir, accounts, 'ann')).names).toEqual(['sign_in']);
});
