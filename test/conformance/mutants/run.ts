/**
 * `npm run conformance:mutants`: breaks one promise after the other in a copy of the sources and runs the part of the conformance
 * suite that guards it. A suite that still passes did not judge the effect, and the run fails. Words after `--` choose mutants by
 * their promise. Two copies are worked on at once; each gateway is started and ended by the suite itself.
 */
import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { harnMutants } from './harn.ts';
import { type Mutant, mutated } from './mutant.ts';
import { runsMutants } from './runs.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const COPIED = [
  'src',
  'adapters',
  'mappings',
  'test/conformance',
  'test/support',
  'fixtures/harn',
  'package.json',
  'tsconfig.json',
];
/** A suite that takes longer than this hangs; that is noticing too, but it should fail by itself. */
const LONGEST_MS = 180_000;

export const mutants: readonly Mutant[] = [...harnMutants, ...runsMutants];

interface Verdict {
  readonly caught: boolean;
  readonly output: string;
}

async function main(words: readonly string[]): Promise<number> {
  const chosen = mutants.filter(({ promise }) => words.length === 0 || words.some((word) => promise.includes(word)));
  const left = [...chosen];
  const survivors: Mutant[] = [];
  let done = 0;
  await Promise.all(
    Array.from({ length: Math.min(2, availableParallelism(), left.length) }, async () => {
      const dir = await copyOfSources();
      try {
        await requireSound(dir, left);
        for (let mutant = left.shift(); mutant; mutant = left.shift()) {
          const { caught, output } = await examined(dir, mutant);
          done += 1;
          console.log(`${done}/${chosen.length} ${caught ? 'caught  ' : 'SURVIVED'} ${mutant.promise}`);
          if (!caught) {
            survivors.push(mutant);
            console.log(`     ${mutant.file}: ${output.trim().replaceAll('\n', '\n     ').slice(-1_000)}`);
          }
        }
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    }),
  );
  console.log(`${chosen.length - survivors.length} passed, ${survivors.length} failed`);
  return survivors.length === 0 && chosen.length > 0 ? 0 : 1;
}

async function copyOfSources(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-mutants-'));
  for (const path of COPIED) await cp(join(ROOT, path), join(dir, path), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
  return dir;
}

/** A suite that fails on unbroken sources would call every mutant caught. */
async function requireSound(dir: string, wanted: readonly Mutant[]): Promise<void> {
  const first = wanted[0];
  if (!first) return;
  const { caught, output } = await suite(dir, first);
  if (caught) throw new Error(`the suite fails before anything is broken:\n${output}`);
}

async function examined(dir: string, mutant: Mutant): Promise<Verdict> {
  const path = join(dir, mutant.file);
  const text = await readFile(path, 'utf8');
  await writeFile(path, mutated(mutant, text));
  try {
    return await suite(dir, mutant);
  } finally {
    await writeFile(path, text);
  }
}

/** Caught: at least one check failed. A gateway that does not even start proves nothing about the checks. */
function suite(dir: string, { by }: Mutant): Promise<Verdict> {
  const options =
    by.suite === 'harn'
      ? ['harn', '--bail', '--source', '--category', by.category, '--revision', by.revision]
      : ['runs', '--bail', '--only', by.only];
  const args = ['--import', 'tsx', join(dir, 'test/conformance/run.ts'), ...options];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
    const late = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS);
    let output = '';
    const hear = (chunk: Buffer) => {
      output += String(chunk);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('error', reject);
    child.once('close', () => {
      clearTimeout(late);
      const [, passed, failed] = /^(\d+) passed, (\d+) failed$/m.exec(output) ?? [];
      if (passed === undefined) reject(new Error(`the suite did not finish:\n${output.slice(-2_000)}`));
      else resolve({ caught: Number(failed) > 0, output });
    });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
