/**
 * Commands that are a person's, run by an agent under supervision: refused however it is started and whatever it does to its
 * environment, before anything is looked up or written.
 */

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { PROGRAM, ran } from '../support/process/cli.ts';

const BELOW = join(import.meta.dirname, '../support/upstreams/below.mjs');
const PERSONS = [
  'approve',
  'deny',
  'approve without an environment',
  'approve in a session of its own',
  'keys create',
  'keys revoke',
  'keys rotate',
  'vault set',
  'vault remove',
  'mcp accept',
];

function stage() {
  const dir = mkdtempSync(join(tmpdir(), 'tb-below-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const data = join(dir, 'data');
  mkdirSync(data, { mode: 0o700 });
  return { dir, data, out: join(dir, 'out.jsonl') };
}

/** What came of each command, once all of them were tried. */
async function tried(out: string): Promise<readonly { how: string; status: number; err: string }[]> {
  const text = () => (existsSync(out) ? readFileSync(out, 'utf8') : '');
  await eventually(() => text().includes('"done"'), 'every command to be tried', { timeoutMs: 100_000 });
  const lines = text().trim().split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}

async function isRefused(out: string): Promise<void> {
  const results = await tried(out);
  expect(results.map(({ how }) => how)).toEqual(PERSONS);
  for (const { how, status, err } of results) {
    expect([how, status !== 0, err]).toEqual([
      how,
      true,
      expect.stringMatching(/is for a person, and this command is not run by one/),
    ]);
  }
}

function started(args: readonly string[], cwd: string) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd, stdio: ['pipe', 'ignore', 'ignore'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  onTestFinished(async () => {
    child.stdin.end();
    child.kill('SIGTERM');
    await ended;
  });
}

describe.skipIf(process.platform === 'win32')('below a supervised agent', () => {
  test('an agent of `tollbridge acp` cannot speak for its person', async () => {
    const { dir, data, out } = stage();
    started(['--data', data, 'acp', '--', process.execPath, BELOW, PROGRAM, data, out], dir);
    await isRefused(out);
    // The same command of the person, outside: looked up, and not there.
    const mine = await ran(['--data', data, 'approve', 'ask_01M7K0ED77YTSBVXKMHCA362ZK'], '', { cwd: dir });
    expect(mine.err).not.toContain('is for a person');
    expect(mine.code).toBe(3);
  }, 150_000);

  test.runIf(process.platform === 'linux')(
    'an agent that has cleared its own environment, and an orphan of it, neither',
    async () => {
      const { dir, data, out } = stage();
      const bare = 'exec env -i PATH=/usr/bin:/bin "$@"';
      started(
        ['--data', data, 'acp', '--', '/bin/sh', '-c', bare, 'sh', process.execPath, BELOW, PROGRAM, data, out],
        dir,
      );
      await isRefused(out);
      expect(readFileSync(`${out}.orphan`, 'utf8')).toContain('is for a person');
      expect(readFileSync(`${out}.orphan.code`, 'utf8').trim()).not.toBe('0');
    },
    150_000,
  );

  test('a client that starts `tollbridge mcp` is the agent, and cannot speak for its person beside it', async () => {
    const { dir, data, out } = stage();
    // As an MCP client does: it starts the command, and runs what its model wants in a shell of its own.
    const script = `
      const { spawn } = require('node:child_process');
      const stdio = ['pipe', 'ignore', 'ignore'];
      const mcp = spawn(process.execPath, [${JSON.stringify(PROGRAM)}, '--data', ${JSON.stringify(data)}, 'mcp', '--', 'cat'], { stdio });
      const tries = spawn(process.execPath, ${JSON.stringify([BELOW, PROGRAM, data, out])}, { stdio });
      process.stdin.resume();
      process.stdin.once('end', () => { mcp.stdin.end(); tries.stdin.end(); });
    `;
    const client = spawn(process.execPath, ['-e', script], { cwd: dir, stdio: ['pipe', 'ignore', 'ignore'] });
    const ended = new Promise<void>((resolve) => client.once('exit', () => resolve()));
    onTestFinished(async () => {
      client.stdin.end();
      await ended;
    });
    await isRefused(out);
  }, 150_000);
});
