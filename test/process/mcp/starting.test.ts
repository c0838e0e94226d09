/** `tollbridge mcp -- server`: the server starts as it would have without us, also where several clients start at once. */
import { mkdtempSync, readFileSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { aDirectory } from '../../support/process/cli.ts';
import { startSpeaking } from '../../support/process/stdio-process.ts';

const STEERED = join(import.meta.dirname, '../../support/upstreams/steered-server.mjs');
const GREETING = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };

/** What a client configures for its server. */
const CONFIGURED = {
  API_TOKEN: 'for the server',
  HTTPS_PROXY: 'http://proxy.example:3128',
  no_proxy: 'localhost',
  NODE_EXTRA_CA_CERTS: '/etc/ssl/company.pem',
  SSL_CERT_FILE: '/etc/ssl/company.pem',
  LD_EXTRA: 'whatever else',
};

test('variables and working directory of the client reach the server, without ours', async () => {
  const dir = await aDirectory();
  const journal = join(dir, 'journal');
  const env = { ...CONFIGURED, TOLLBRIDGE_SECRET_X: 'ours', TOLLBRIDGE_DATA: join(dir, 'data') };
  const { end, exited } = startSpeaking(['mcp', '--', process.execPath, STEERED, journal], { env });
  await end.ask('initialize', GREETING);
  end.close();
  await exited;
  const [first = ''] = readFileSync(journal, 'utf8').split('\n');
  const started = JSON.parse(first) as { env: Record<string, string>; cwd: string };
  expect(started.env).toMatchObject(CONFIGURED);
  // The mark by which its own children are found is the only one that is added.
  expect(Object.keys(started.env).filter((name) => name.startsWith('TOLLBRIDGE_'))).toEqual(['TOLLBRIDGE_CHILD']);
  const { TOLLBRIDGE_CHILD: _, ...theirs } = started.env;
  expect(Object.keys({ ...process.env, ...CONFIGURED }).filter((name) => !(name in theirs))).toEqual(
    Object.keys(process.env).filter((name) => name.startsWith('TOLLBRIDGE_')),
  );
  expect(started.cwd).toBe(realpathSync(process.cwd()));
});

test('five that start at once on a fresh data directory all start, each time', async () => {
  for (const round of [1, 2]) {
    const data = mkdtempSync(join(tmpdir(), `tb-at-once-${round}-`));
    onTestFinished(() => rm(data, { recursive: true, force: true, maxRetries: 5 }));
    const clients = [1, 2, 3, 4, 5].map((each) => {
      const words = ['--data', join(data, 'data'), 'mcp', '--name', `s${each}`, '--', process.execPath, STEERED];
      return startSpeaking([...words, join(data, `journal${each}`)]);
    });
    const opened = clients.map(async ({ end, stderr, exited }) => {
      const ended: Promise<never> = exited.then(() => Promise.reject(new Error(`it ended: ${stderr()}`)));
      ended.catch(() => {});
      await Promise.race([end.ask('initialize', GREETING), ended]);
      end.notify('notifications/initialized', {});
      const { result } = await Promise.race([end.ask('tools/list', {}), ended]);
      const { tools } = result ?? {};
      return Array.isArray(tools) && tools.length;
    });
    expect(await Promise.all(opened)).toEqual([2, 2, 2, 2, 2]);
    for (const { end } of clients) end.close();
    await Promise.all(clients.map(({ exited }) => exited));
  }
}, 120_000);
