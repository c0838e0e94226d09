/** The fixture server over HTTP in a process of its own, for tests that put load on it. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Fixture } from './mcp-fixture.ts';

export type FixtureProcess = Fixture;

export async function startFixture(): Promise<FixtureProcess> {
  const file = fileURLToPath(new URL('./mcp-fixture.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', file, '--http', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding('utf8').once('data', (text: string) => resolve(text.trim()));
    child.once('exit', () => reject(new Error('the fixture did not start')));
  });
  return {
    url,
    close: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve());
        child.kill();
      }),
  };
}
