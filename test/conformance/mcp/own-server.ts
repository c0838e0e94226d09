/**
 * The suite's own `everything-server`. Its package leaves it out, so it comes from the suite's repository, at one commit:
 * fetched into `tools/mcp/node_modules` when first needed, or from the checkout that `MCP_SUITE` names.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Closable } from '../../../src/ports/index.ts';
import { PROJECT } from '../../support/process/project.ts';

const REPOSITORY = 'https://github.com/modelcontextprotocol/conformance';
const COMMIT = 'c321dd32035556e6769d3724a8ee97d87c3faaac';
const FETCHED = join(PROJECT, 'tools', 'mcp', 'node_modules', '.suite');
const run = promisify(execFile);

/** Throws when the server is not to be had: a comparison that did not take place is not one that passed. */
export async function serveEverything(): Promise<Closable & { readonly url: string }> {
  const folder = join(process.env.MCP_SUITE ?? (await fetched()), 'examples/servers/typescript');
  if (!existsSync(join(folder, 'node_modules'))) await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder });
  const port = await freePort();
  const child = spawn(process.execPath, ['--import', 'tsx', 'everything-server.ts'], {
    cwd: folder,
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => text.includes('running on') && resolve());
    child.once('error', reject);
    child.once('close', () => reject(new Error('everything-server ended before it listened')));
  });
  return {
    url: `http://localhost:${port}/mcp`,
    async close() {
      child.kill('SIGTERM');
      await gone;
    },
  };
}

async function fetched(): Promise<string> {
  if (existsSync(join(FETCHED, 'examples'))) return FETCHED;
  await mkdir(FETCHED, { recursive: true });
  const git = (...args: readonly string[]) => run('git', [...args], { cwd: FETCHED });
  await git('init', '-q');
  await git('fetch', '-q', '--depth', '1', REPOSITORY, COMMIT);
  await git('checkout', '-q', 'FETCH_HEAD');
  return FETCHED;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
