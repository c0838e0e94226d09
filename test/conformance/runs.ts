/**
 * `npm run conformance -- runs`: Agent Harness v1 endpoint by endpoint, status by status, code by code. Without `--target` a
 * server of our own is started, examined and closed. What cannot be looked at elsewhere is skipped, and never counted as passed.
 */
import { parseArgs } from 'node:util';
import { Skip } from './harn/harness/expect.ts';
import type { Print } from './run.ts';
import { creating } from './runs/creating.ts';
import { living } from './runs/living.ts';
import { type OwnServer, startOwn } from './runs/own.ts';
import { reading } from './runs/reading.ts';
import { createTarget, KEYS, type RunsCheck, type TargetOptions, WORDS } from './runs/target.ts';

const USAGE = `npm run conformance -- runs [options]
  --target URL           a server, without the /v1; without it one of our own is started
  --key PAIR             key_id:secret (or RUNS_CONFORMANCE_KEY)
  --other-key PAIR       a key of another customer; also --revoked-key, --weak-key, --denied-key
  --word NAME=TEXT       what to say for: ${WORDS.join(', ')}; may be repeated
  --only TEXT            only checks with this in their name
  --bail                 stop after the first check that fails
  --timeout MS           for each wait (15000)
  -v, --verbose          name what passed and what was skipped, too`;

const OPTIONS = {
  target: { type: 'string' },
  key: { type: 'string' },
  'other-key': { type: 'string' },
  'revoked-key': { type: 'string' },
  'weak-key': { type: 'string' },
  'denied-key': { type: 'string' },
  word: { type: 'string', multiple: true },
  only: { type: 'string' },
  bail: { type: 'boolean' },
  timeout: { type: 'string' },
  verbose: { type: 'boolean', short: 'v' },
} as const;

export const checks: readonly RunsCheck[] = [...creating, ...living, ...reading];

export async function main(args: readonly string[], print: Print): Promise<number> {
  const read = readOptions(args);
  if (typeof read === 'string') {
    console.error(`${read}\n${USAGE}`);
    return 2;
  }
  const { values } = read;
  const timeoutMs = Number(values.timeout ?? 15_000);
  let own: OwnServer | undefined;
  try {
    own = values.target ? undefined : await startOwn();
    const options: TargetOptions = own ? { ...own, timeoutMs } : { ...elsewhere(values), timeoutMs };
    const chosen = checks.filter(({ name }) => !values.only || name.includes(values.only));
    return await examine(chosen, options, { verbose: values.verbose ?? false, bail: values.bail ?? false }, print);
  } finally {
    await own?.close();
  }
}

async function examine(
  chosen: readonly RunsCheck[],
  options: TargetOptions,
  { verbose, bail }: { readonly verbose: boolean; readonly bail: boolean },
  print: Print,
): Promise<number> {
  const at = createTarget(options);
  let [passed, failed, skipped] = [0, 0, 0];
  for (const check of chosen) {
    try {
      await check.run(at);
      passed += 1;
      if (verbose) print(`ok   ${check.name}`);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      if (cause instanceof Skip) {
        skipped += 1;
        if (verbose) print(`skip ${check.name} (${why})`);
      } else {
        failed += 1;
        print(`FAIL ${check.name}\n     ${why.replaceAll('\n', '\n     ')}`);
        if (bail) break;
      }
    }
  }
  if (skipped > 0) print(`${skipped} skipped`);
  print(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

type Values = ReturnType<typeof parse>['values'];

/** Whatever its agent is, it can be said hello to. */
function elsewhere(values: Values): Omit<TargetOptions, 'timeoutMs'> {
  const words = (values.word ?? []).map((word) => word.split(/=(.*)/s, 2));
  return {
    base: values.target ?? '',
    key: values.key ?? process.env.RUNS_CONFORMANCE_KEY ?? '',
    keys: Object.fromEntries(KEYS.flatMap((name) => (values[`${name}-key`] ? [[name, values[`${name}-key`]]] : []))),
    words: { hello: 'hello', ...Object.fromEntries(words) },
  };
}

function parse(args: readonly string[]) {
  return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: false });
}

function readOptions(args: readonly string[]): ReturnType<typeof parse> | string {
  try {
    const read = parse(args);
    const { target, timeout, word = [] } = read.values;
    if (target !== undefined && !URL.canParse(target)) return `${target} is not a URL`;
    if (timeout !== undefined && !(Number(timeout) > 0)) return `${timeout} is not a number of milliseconds`;
    const unknown = word.find((each) => !(WORDS as readonly string[]).includes(each.split('=')[0] ?? ''));
    if (unknown) return `there is no word ${unknown}; there are: ${WORDS.join(', ')}`;
    return read;
  } catch (cause) {
    return (cause as Error).message;
  }
}
