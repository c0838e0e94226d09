/**
 * An agent that tries to speak for its person: it runs the commands that are a person's and writes down what came of each. It
 * begins when the process that supervises it has said so, because before that it would prove nothing.
 *
 * node below.mjs <program> <data directory> <file for what came of it>
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const [program, data, out] = process.argv.slice(2);
const running = join(data, 'running');
const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
while (!existsSync(running) || !readdirSync(running).some((name) => name.endsWith('.json'))) pause(20);

const note = (how, { status, stderr }) =>
  appendFileSync(out, `${JSON.stringify({ how, status, err: String(stderr ?? '') })}\n`);
const typed = (...args) => [process.execPath, program, '--data', data, ...args];
const run = (how, [command, ...args], more = {}) =>
  note(how, spawnSync(command, args, { encoding: 'utf8', input: 'a-long-secret', ...more }));

const id = 'ask_01M7K0ED77YTSBVXKMHCA362ZK';
const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: process.env.HOME ?? '/' };
run('approve', typed('approve', id));
run('deny', typed('deny', id, 'no'));
run('approve without an environment', typed('approve', id), { env });
run('approve in a session of its own', typed('approve', id), { env, detached: true });
run('keys create', typed('keys', 'create', 'mine', '--for', 'admin'), { env });
run('keys revoke', typed('keys', 'revoke', '0000000000000000'), { env });
run('keys rotate', typed('keys', 'rotate'), { env });
run('vault set', typed('vault', 'set', 'far-token'), { env });
run('vault remove', typed('vault', 'remove', 'far-token'), { env });
run('mcp accept', typed('mcp', 'accept', 'files', 'read_file'), { env });
// Nobody is left above it when it begins.
const quoted = typed('approve', id)
  .map((word) => `'${word}'`)
  .join(' ');
const orphan = `( sleep 0.5; ${quoted} 2>'${out}.orphan'; echo $? >'${out}.orphan.code' ) >/dev/null 2>&1 &`;
spawnSync('/bin/sh', ['-c', orphan], { env, stdio: 'ignore' });
while (!existsSync(`${out}.orphan.code`)) pause(20);
appendFileSync(out, '{"how":"done"}\n');
process.stdin.resume();
process.stdin.once('end', () => process.exit(0));
