/** Configurations that stand in the pages are configurations. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { adapters } from '../../../adapters/index.ts';
import { configSchema } from '../../../src/runtime/config/schema.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const valid = new Ajv2020({ strict: false, allErrors: true }).compile(configSchema(adapters));
const pages = [
  'README.md',
  ...(await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
  ...(await readdir(join(root, 'adapters'), { recursive: true }))
    .filter((name) => name.endsWith('README.md'))
    .map((name) => `adapters/${name}`),
  'src/inbox/README.md',
];

test('every block of YAML in a page is a configuration, or rules', async () => {
  const wrong: unknown[] = [];
  let blocks = 0;
  for (const page of pages) {
    const text = await readFile(join(root, page), 'utf8');
    for (const [, block = ''] of text.matchAll(/^```ya?ml\n([\s\S]*?)^```/gm)) {
      const value: unknown = parse(block);
      blocks += 1;
      // Rules by themselves are a list.
      if (!valid(Array.isArray(value) ? { rules: value } : value)) wrong.push({ page, block, errors: valid.errors });
    }
  }
  expect(wrong).toEqual([]);
  expect(blocks).toBeGreaterThan(8);
});
