/** The packed program: every type that a public type names is in it, and nothing that only weighs. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join, normalize, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../../..');
const PUBLIC = ['dist/src/index.d.ts', 'dist/src/runtime/gateway.d.ts'];

async function packed(): Promise<ReadonlySet<string>> {
  const npm = promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    maxBuffer: 32 * 1024 * 1024,
  });
  const [{ files }] = JSON.parse((await npm).stdout) as [{ files: { path: string }[] }];
  return new Set(files.map(({ path }) => path));
}

test('the console is files: what people install has no part of a front end among its dependencies', async () => {
  const { dependencies, peerDependencies, devDependencies } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  );
  const app = ['preact', 'vite', 'playwright-core', '@sparticuz/chromium', 'axe-core'];
  expect(app.filter((name) => !(name in devDependencies))).toEqual([]);
  expect(app.filter((name) => name in dependencies || name in peerDependencies)).toEqual([]);
  const files = [...(await packed())].filter((file) => /^dist\/console\/.*\.js$/.test(file));
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) {
    const text = await readFile(join(ROOT, file), 'utf8');
    expect([file, /\bfrom\s*["'](?![./])|\bimport\(\s*["'](?![./])|\bimport\s*["'](?![./])/.exec(text)?.[0]]).toEqual([
      file,
      undefined,
    ]);
  }
});

test('every type that a public type names is packed; pictures, maps and types that none names are not', async () => {
  const files = await packed();
  const seen = new Set<string>();
  const open = [...PUBLIC];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    const text = await readFile(join(ROOT, file), 'utf8');
    for (const [, named = ''] of text.matchAll(/(?:from|import\()\s*['"](\.[^'"]+)['"]/g)) {
      open.push(normalize(join(dirname(file), named)).replace(/(?:\.d)?\.[jt]s$/, '.d.ts'));
    }
  }
  expect(seen.size).toBeGreaterThan(50);
  expect([...seen].filter((file) => !files.has(file))).toEqual([]);
  const heavy = [...files].filter((file) => /\.map$|^docs\/images\/|tsbuildinfo$|^(?:src|test|bench)\//.test(file));
  expect(heavy).toEqual([]);
  const untold = [...files].filter((file) => /^dist\/(?:adapters\/.+\/|mappings|src\/cli).*\.d\.ts$/.test(file));
  expect(untold).toEqual([]);
  for (const file of ['dist/src/main.js', 'dist/console/index.html', 'docs/console.md', 'LICENSE', 'README.md']) {
    expect(files.has(file), file).toBe(true);
  }
});
