/**
 * The optional suites with programs of others: `npm run interop -- acp`. They are large and installed apart, in `interop`.
 * One JSON line per case on standard output; exit 1 when one of them is not as it should be. Where the system lets us, all of
 * it runs in a network of its own that has nothing but loopback.
 */
import { spawnSync } from 'node:child_process';
import { a2a } from './a2a.ts';
import { acp } from './acp.ts';
import { mcp } from './mcp.ts';

const SUITES = { acp, a2a, mcp } as const;
/** Of the system, where it is Linux. */
const UNSHARE = 'unshare';
const CUT_OFF = 'TOLLBRIDGE_INTEROP_CUT_OFF';
const tell = (line: string) => process.stdout.write(`${line}\n`);

/** `unshare` with a loopback that is up, if there is such a thing here. */
function cutOff(command: readonly string[], stdio: 'inherit' | 'ignore'): number | null {
  const words = ['-rn', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...command];
  return spawnSync(UNSHARE, words, { stdio, env: { ...process.env, [CUT_OFF]: '1' } }).status;
}

async function run(wanted: readonly string[]): Promise<void> {
  const names = wanted.length > 0 ? wanted : Object.keys(SUITES);
  const unknown = names.find((name) => !Object.hasOwn(SUITES, name));
  if (unknown !== undefined) {
    process.stderr.write(`there is no suite called ${unknown}; there are: ${Object.keys(SUITES).join(', ')}\n`);
    process.exitCode = 2;
    return;
  }
  if (!process.env[CUT_OFF] && cutOff(['true'], 'ignore') === 0) {
    process.exitCode = cutOff([process.execPath, ...process.execArgv, ...process.argv.slice(1)], 'inherit') ?? 1;
    return;
  }
  tell(JSON.stringify({ network: process.env[CUT_OFF] ? 'loopback only' : 'not cut off: unshare is not to be had' }));
  for (const name of names) {
    const reports = await SUITES[name as keyof typeof SUITES](tell);
    if (reports.some(({ ok }) => ok === false)) process.exitCode = 1;
  }
}

await run(process.argv.slice(2));
