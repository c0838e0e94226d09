/**
 * Runs conformance suites by name: `npm run conformance -- model`. A suite is a file next to this one that exports
 * `checks`, or `main` when it takes options, which stand after the names: `npm run conformance -- harn --target <url>`.
 * Exit 0: all passed. 1: some failed, each named with its reason. 2: there is no such suite or option.
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
/** A suite that takes options runs itself, closes with the same line, and says how to exit. */
export interface OwnSuite {
  main(options: readonly string[], print: Print): Promise<number>;
}

export type Print = (line: string) => void;

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

async function main(args: readonly string[], print: Print): Promise<number> {
  const end = args.findIndex((arg) => arg.startsWith('-'));
  const names = end < 0 ? args : args.slice(0, end);
  const options = args.slice(names.length);
  const known = suiteNames();
  const unknown = names.find((name) => !known.includes(name));
  if (names.length === 0 || unknown !== undefined) {
    const what = unknown === undefined ? 'name a suite' : `there is no suite called ${unknown}`;
    console.error(`${what}; there are: ${known.join(', ')}`);
    return 2;
  }
  let code = 0;
  for (const name of names) {
    const suite = (await import(`./${name}.ts`)) as Suite | OwnSuite;
    if (!('main' in suite) && options.length > 0) {
      console.error(`the suite ${name} takes no options`);
      return 2;
    }
    const ended = 'main' in suite ? await suite.main(options, print) : Number((await runSuite(suite, print)) > 0);
    code = Math.max(code, ended);
  }
  return code;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await main(process.argv.slice(2), (line) => console.log(line));
}
