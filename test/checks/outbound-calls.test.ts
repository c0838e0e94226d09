/**
 * Requests of ours are never redirected: a redirect is how an address that may be called leads to one that may not, with headers and
 * bodies that were meant for the first. Read from the sources, so that a new call cannot forget it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

function sources(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
}

interface Property {
  readonly type: string;
  readonly key?: { readonly name?: string };
  readonly value?: { readonly value?: unknown };
}

/** Calls of `fetch` that do not say what becomes of a redirect. */
function unguarded(file: string): readonly string[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  if (!/\bfetch\b/.test(source)) return []; // parsing takes far longer than reading
  const found: string[] = [];
  new Visitor({
    CallExpression({ callee, arguments: input, start }) {
      if (callee.type !== 'Identifier' || callee.name !== 'fetch') return;
      const options = input[1] as unknown as
        | { readonly type: string; readonly properties?: readonly Property[] }
        | undefined;
      const redirect = options?.properties?.find(({ key }) => key?.name === 'redirect')?.value?.value;
      if (redirect !== 'error' && redirect !== 'manual') {
        found.push(`${file}:${source.slice(0, start).split('\n').length}`);
      }
    },
  }).visit(parseSync(file, source).program);
  return found;
}

test('every request of ours says that it is not redirected', () => {
  const files = [...sources('src'), ...sources('adapters')];
  expect(files.length).toBeGreaterThan(300);
  expect(files.flatMap(unguarded)).toEqual([]);
});
