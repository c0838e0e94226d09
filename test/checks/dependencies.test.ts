/** Every runtime dependency does work in the product and has its reason in docs/dependencies.md. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(read('package.json')) as {
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional?: boolean }>;
};
const names = Object.keys(dependencies).sort();

const imported = new Set<string>();
for (const folder of ['src', 'adapters']) {
  for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    // Static, dynamic and required: a schema is required, because it is no module.
    for (const [, name = ''] of read(join(folder, file)).matchAll(/(?:from |import\(|import |\)\()'([^'.][^']*)'/g)) {
      imported.add(name.startsWith('@') ? name.split('/', 2).join('/') : (name.split('/', 1)[0] ?? name));
    }
  }
}

test('every runtime dependency is imported by the product', () => {
  expect(names.filter((name) => !imported.has(name))).toEqual([]);
});

test('docs/dependencies.md has a row with a reason for each of them, and for nothing else', () => {
  const [, table = ''] = read('docs/dependencies.md').split(/^## /m);
  const rows = [...table.matchAll(/^\| `([^`]+)`\s*\| (.*?) +\|/gm)];
  expect(rows.map(([, name]) => name)).toEqual(names);
  expect(rows.filter(([, , reason = '']) => reason.trim().length < 10)).toEqual([]);
});

test('the lock file agrees on which dependencies are runtime ones', () => {
  const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, { dependencies?: object }> };
  expect(Object.keys(lock.packages['']?.dependencies ?? {}).sort()).toEqual(names);
});

test('what only some installations need is an optional peer, with a row that says what needs it', () => {
  const section = read('docs/dependencies.md').split(/^## /m)[2] ?? '';
  const named = [...section.matchAll(/`((?:@[a-z-]+\/)?[a-z-]+)`(?=,| +\|)/g)].map(([, name = '']) => name);
  expect(named.sort()).toEqual(Object.keys(peerDependencies).sort());
  expect(Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional)).toEqual([]);
});
