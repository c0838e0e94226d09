/**
 * Runs the measurements: all of them, or those named (`npm run -s bench -- append gate`). Standard output is one JSON object
 * per line and nothing else; everything for people goes to standard error. Exit 1: one could not be measured. 2: there
 * is no measurement of that name.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Measured {
  readonly bench: string;
  /** Ours over theirs, measured side by side in the same run. */
  readonly ratio: number;
  readonly against: string;
  readonly [figure: string]: number | string;
}
export interface Bench {
  readonly name: string;
  /** More names it goes by, when one file measures several things; each can be asked for alone. */
  readonly names?: readonly string[];
  run(name?: string): Promise<readonly Measured[]>;
}

export interface Runner {
  readonly names: readonly string[];
  load(name: string): Promise<Bench>;
  print(line: string): void;
  progress(line: string): void;
}

export async function runBenches(wanted: readonly string[], { names, load, print, progress }: Runner): Promise<number> {
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    progress(`there is no measurement called ${unknown.join(' or ')}; there are: ${names.join(', ')}`);
    return 2;
  }
  let failed = 0;
  for (const name of wanted.length > 0 ? wanted : names) {
    progress(`measuring ${name} ...`);
    try {
      const figures = await (await load(name)).run(name);
      for (const figure of figures) print(JSON.stringify(checked(figure)));
    } catch (cause) {
      failed += 1;
      progress(`${name} could not be measured: ${cause instanceof Error ? cause.message : String(cause)}`);
    }
  }
  return failed === 0 ? 0 : 1;
}

/** A figure without a comparison is not reported. */
function checked(figure: Measured): Measured {
  const { bench, ratio, against } = figure;
  if (!bench || !against || !Number.isFinite(ratio) || ratio <= 0) {
    throw new Error(`${JSON.stringify(figure)} lacks bench, ratio or against`);
  }
  return figure;
}

/** Every measurement and the folder of its file. */
function benchFiles(): ReadonlyMap<string, string> {
  const filesIn = (folder: string) =>
    readdirSync(new URL(folder, import.meta.url))
      .filter((file) => file.endsWith('.js'))
      .map((file) => [file.slice(0, -'.js'.length), folder] as const);
  return new Map(['./parts', './whole'].flatMap(filesIn).toSorted());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // Output of a measurement must not break the JSON lines that another program reads.
  console.log = console.error;
  const folders = benchFiles();
  const files = [...folders.keys()];
  const wanted = process.argv.slice(2);
  // `ahp-http` is measured by `ahp.ts`, which says so itself.
  const fileOf = (name: string) => (files.includes(name) ? name : (name.split('-')[0] as string));
  const load = (name: string) => import(`${folders.get(fileOf(name))}/${fileOf(name)}.js`) as Promise<Bench>;
  const parts = new Set(
    wanted
      .filter((name) => !files.includes(name))
      .map(fileOf)
      .filter((file) => files.includes(file)),
  );
  const more = await Promise.all([...parts].map(async (file) => (await load(file)).names ?? []));
  process.exitCode = await runBenches(wanted.length > 0 ? wanted : files, {
    names: [...files, ...more.flat()],
    load,
    print: (line) => process.stdout.write(`${line}\n`),
    progress: (line) => process.stderr.write(`${line}\n`),
  });
}
