/** Stopping a gateway with many servers, of which some ignore the end of their input and SIGTERM: none is left, and nothing waits in turn. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { aDirectory, startGateway } from '../../support/process/cli.ts';
import { isAlive, programsIn } from '../../support/upstreams/journal.ts';

const STEERED = join(import.meta.dirname, '../../support/upstreams/steered-server.mjs');

test('twenty servers, two of which ignore SIGTERM: all are gone, and the exit code is 0', async () => {
  const dir = await aDirectory();
  const journal = (at: number) => join(dir, `${at}.journal`);
  const servers = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [
      `s${at}`,
      { mcp: { command: [process.execPath, STEERED, journal(at), ...(at < 2 ? ['--stays'] : [])] } },
    ]),
  );
  const file = join(dir, 'tollbridge.yaml');
  await writeFile(file, JSON.stringify({ tools: servers }));
  const gateway = await startGateway(['--config', file, '--data', join(dir, 'data')]);
  const all = () => Object.keys(servers).flatMap((_, at) => programsIn(journal(at)));
  await eventually(
    () => Object.keys(servers).every((_, at) => notes(journal(at)).includes('"tools/list"')),
    'all servers to be listed',
    { timeoutMs: 60_000 },
  );
  gateway.child.kill('SIGTERM');
  const { code } = await gateway.ended;
  expect(code).toBe(0);
  expect(all().length).toBeGreaterThanOrEqual(20);
  expect(all().filter(isAlive)).toEqual([]);
  expect([0, 1].map((at) => notes(journal(at)).includes('"ignored":"SIGTERM"'))).toEqual([true, true]);
}, 120_000);

function notes(journal: string): string {
  try {
    return readFileSync(journal, 'utf8');
  } catch {
    return '';
  }
}
