/** Children: started as they were named, drained, and ended so that nothing of them is left, whatever they do about it. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startChild } from '../../src/transport/process/child.ts';
import { descendantsOf } from '../../src/transport/process/descendants.ts';
import { superviseIn } from '../../src/transport/process/supervision.ts';
import { eventually } from '../support/eventually.ts';

const node = process.execPath;
const script = (text: string) => [node, '-e', text];
const GRANDCHILD = `'process.on("SIGTERM",()=>{});process.on("SIGHUP",()=>{});console.log(process.pid);setInterval(()=>{},1e6)'`;
const grandchild = (options: string) =>
  `const g=require("child_process").spawn(process.execPath,["-e",${GRANDCHILD}],${options});`;

async function firstLine(stream: Readable): Promise<string> {
  const lines = createInterface({ input: stream });
  const [line] = (await once(lines, 'line')) as [string];
  return line;
}

/** A dead one that nobody has buried yet does not run. */
function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

async function ends(pid: number): Promise<void> {
  await eventually(() => !runs(pid), `the end of process ${pid}`);
}

test('arguments arrive as they were given, no shell in between', async () => {
  const child = await startChild({
    command: [node, '-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '$HOME', 'a b', ';ls', '`id`'],
  });
  expect(await firstLine(child.stdout)).toBe('["$HOME","a b",";ls","`id`"]');
  expect(await child.exited).toEqual({ code: 0, signal: null });
  await child.close();
});

test('the environment is the one given, and the directory too', async () => {
  const child = await startChild({
    command: script('console.log(process.cwd(), process.env.ONE, process.env.HOME)'),
    cwd: '/',
    env: { ONE: '1' },
  });
  expect(await firstLine(child.stdout)).toBe('/ 1 undefined');
  await child.close();
});

test('one that heeds the end of its input leaves by itself', async () => {
  const child = await startChild({ command: script('process.stdin.resume().on("end",()=>process.exit(7))') });
  await child.close(20_000);
  expect(await child.exited).toEqual({ code: 7, signal: null });
  expect(runs(child.pid)).toBe(false);
});

test('one that ignores the end of its input is asked, and then killed', async () => {
  const asked = await startChild({ command: script('console.log("up");setInterval(()=>{},1e6)') });
  await firstLine(asked.stdout);
  await asked.close(50);
  expect(await asked.exited).toEqual({ code: null, signal: 'SIGTERM' });

  const deaf = await startChild({
    command: script('process.on("SIGTERM",()=>{});console.log("up");setInterval(()=>{},1e6)'),
  });
  await firstLine(deaf.stdout);
  await Promise.all([deaf.close(50), deaf.close(50)]);
  expect(await deaf.exited).toEqual({ code: null, signal: 'SIGKILL' });
});

test('what a dead child left behind in its group is ended with it', async () => {
  const child = await startChild({
    command: script(`${grandchild('{stdio:["ignore","inherit","ignore"]}')}setTimeout(()=>process.exit(0),300)`),
  });
  const pid = Number(await firstLine(child.stdout));
  await child.exited;
  expect(runs(pid)).toBe(true);
  await child.close(50);
  await ends(pid);
});

if (process.platform === 'linux') {
  test('what went into a session of its own is found and ended', async () => {
    const child = await startChild({
      command: script(`${grandchild('{stdio:["ignore","inherit","ignore"],detached:true}')}setInterval(()=>{},1e6)`),
    });
    const pid = Number(await firstLine(child.stdout));
    await child.close(50);
    await ends(pid);
  });
}

test('a command or directory that is not there is reported by name', async () => {
  await expect(startChild({ command: ['no-such-agent', '--acp'] })).rejects.toMatchObject({
    kind: 'upstream_unavailable',
    message: 'could not start no-such-agent: there is no such command',
  });
  await expect(startChild({ command: [node], cwd: '/no/such/place' })).rejects.toMatchObject({
    kind: 'upstream_unavailable',
    message: `could not start ${node}: there is no directory /no/such/place`,
  });
  await expect(startChild({ command: [] })).rejects.toMatchObject({ kind: 'invalid_request' });
});

test('standard error is read to the end, line by line, long lines cut', async () => {
  const received: string[] = [];
  const child = await startChild({
    command: script('process.stderr.write("one\\r\\n\\n"+"x".repeat(3e6)+"\\nlast");console.log("done")'),
    onStderr: (line) => received.push(line),
  });
  expect(await firstLine(child.stdout)).toBe('done');
  await child.close();
  expect(received).toEqual(['one', 'x'.repeat(4_096), 'last']);
});

test('nobody listens to its errors and it still goes on', async () => {
  const child = await startChild({ command: script('process.stderr.write("x".repeat(3e6),()=>console.log("done"))') });
  expect(await firstLine(child.stdout)).toBe('done');
  await child.close();
});

test('writing to one that has gone is no error', async () => {
  const child = await startChild({ command: script('process.exit(3)') });
  expect(await child.exited).toEqual({ code: 3, signal: null });
  child.stdin.write('x'.repeat(1_000_000));
  await child.close();
});

test('a program that cannot be put on record as supervised is ended at once', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'tb-child-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const endSupervision = superviseIn(dir);
  onTestFinished(endSupervision);
  rmSync(join(dir, 'running'), { recursive: true });
  // It says its number the moment it runs, and heeds nothing.
  const reported = join(dir, 'pid');
  writeFileSync(reported, '');
  const command = script(
    `process.on('SIGTERM',()=>{});require('fs').writeFileSync(${JSON.stringify(reported)},String(process.pid));setInterval(()=>{},1e6)`,
  );
  await expect(startChild({ command })).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('the record of supervised programs cannot be written'),
  });
  const pid = Number(readFileSync(reported, 'utf8'));
  if (pid > 0) await ends(pid);
});

test('when we are killed all children are ended, even those that heed nothing', async () => {
  const here = fileURLToPath(new URL('../../src/transport/process/child.ts', import.meta.url));
  const deaf = `process.on("SIGTERM",()=>{});console.log(process.pid);setInterval(()=>{},1e6)`;
  const owner = spawn(
    node,
    [
      '--import',
      'tsx',
      '--input-type=module',
      '-e',
      `const {startChild}=await import(${JSON.stringify(here)});
       const ended=await startChild({command:[process.execPath,"-e",""]});
       for (let n=0;n<2;n++) {
         const child=await startChild({command:[process.execPath,"-e",${JSON.stringify(deaf)}]});
         child.stdout.pipe(process.stdout);
       }
       await ended.close();`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const pids: number[] = [];
  for await (const line of createInterface({ input: owner.stdout })) if (pids.push(Number(line)) === 2) break;
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  expect(pids.map(runs)).toEqual([true, true]);
  await Promise.all(pids.map(ends));
});

test.runIf(process.platform === 'linux')(
  'children that end at once are looked for in one scan of the processes',
  async () => {
    const scans = vi.spyOn(fs, 'readdir');
    syncBuiltinESMExports();
    onTestFinished(() => {
      scans.mockRestore();
      syncBuiltinESMExports();
    });
    const looks = Array.from({ length: 50 }, (_, each) => descendantsOf(process.pid, `mark-${each}`).left());
    await Promise.all(looks);
    expect(scans.mock.calls.map(([path]) => path)).toEqual(['/proc']);
  },
);
