/**
 * Runs one conformance suite by name: `npm run conformance -- model`. A suite is a file next to this one that exports
 * `checks`. Exit 0: all passed. 1: some failed, each named with its reason. 2: there is no such suite.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Check {
  readonly name: string;
  /** Throws when what it claims is not so. */
  run(): void | Promise<void>;
}
export interface Suite {
  /** A list, or a stream for suites that find their checks as they go. */
  readonly checks: Iterable<Check> | AsyncIterable<Check>;
}

type Print = (line: string) => void;

/** The number of checks that failed. */
export async function runSuite({ checks }: Suite, print: Print): Promise<number> {
  let passed = 0;
  let failed = 0;
  for await (const check of checks) {
    try {
      await check.run();
      passed += 1;
    } catch (cause) {
      failed += 1;
      print(`FAIL ${check.name}\n     ${reasonOf(cause)}`);
    }
  }
  print(`${passed} passed, ${failed} failed`);
  return failed;
}

function reasonOf(cause: unknown): string {
  const text = cause instanceof Error ? cause.message || cause.name : String(cause);
  return text.replaceAll('\n', '\n     ');
}

export function suiteNames(): readonly string[] {
  return readdirSync(new URL('.', import.meta.url))
    .filter((file) => /^[a-z0-9-]+\.ts$/.test(file) && file !== 'run.ts')
    .map((file) => file.replace(/\.ts$/, ''))
    .toSorted();
}

async function main(names: readonly string[], print: Print): Promise<number> {
  const known = suiteNames();
  const unknown = names.find((name) => !known.includes(name));
  if (names.length === 0 || unknown !== undefined) {
    const what = unknown === undefined ? 'name a suite' : `there is no suite called ${unknown}`;
    console.error(`${what}; there are: ${known.join(', ')}`);
    return 2;
  }
  let failed = 0;
  for (const name of names) failed += await runSuite((await import(`./${name}.ts`)) as Suite, print);
  return failed === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await main(process.argv.slice(2), (line) => console.log(line));
}
