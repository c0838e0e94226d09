/** The schema that editors read for `tollbridge.yaml` is the one the program checks with, and every example passes both. */
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { adapters } from '../../../adapters/index.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import { readConfig } from '../../../src/runtime/config/config.ts';
import { configSchema } from '../../../src/runtime/config/schema.ts';
import { mountsOf } from '../../../src/runtime/mounts/mounts.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const examples = (await readdir(join(root, 'examples'))).filter((name) => name.endsWith('.yaml'));
const valid = new Ajv2020({ strict: false }).compile(configSchema(adapters));

test('the shipped schema is the one the program would write', async () => {
  const shipped = JSON.parse(await readFile(join(root, 'tollbridge.schema.json'), 'utf8'));
  expect(shipped, 'run: npm run schema').toEqual(configSchema(adapters));
});

test('it knows the adapters: their doors, and what is reached through them', () => {
  expect(valid({ doors: { harn: false, ahp: {} }, agents: { far: { harn: { url: 'http://127.0.0.1:1' } } } })).toBe(
    true,
  );
  expect(valid({ doors: { gopher: {} } })).toBe(false);
  expect(valid({ doors: { harn: { json_limit: 5 } } })).toBe(false);
  expect(valid({ agents: { far: { gopher: {} } } })).toBe(false);
  expect(valid({ agents: { far: {} } })).toBe(false);
  expect(valid({ harnesses: { guard: { ahp: { url: 'ws://127.0.0.1:1' } } } })).toBe(true);
});

describe.each(examples)('examples/%s', (name) => {
  test('is a configuration, with rules that load', async () => {
    const file = join(root, 'examples', name);
    const text = await readFile(file, 'utf8');
    expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=../tollbridge.schema.json');
    expect(valid(parse(text)), JSON.stringify(valid.errors)).toBe(true);
    const config = await readConfig({ file, env: {}, cwd: root });
    const mounts = mountsOf(config, adapters);
    expect(mounts.doors.length).toBe(adapters.filter(({ parts }) => parts.door).length);
    expect(basename(config.file ?? '')).toBe(name);
    await expect(config.policy.load().then(loadPolicies)).resolves.toBeDefined();
  });
});
