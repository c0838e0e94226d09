/** `tools.*.expose` and `bundles` in a configuration file: checked, mounted, and read for servers that clients start themselves. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { adapters } from '../../../adapters/index.ts';
import { readConfig } from '../../../src/runtime/config/config.ts';
import { exposedOf, mountsOf } from '../../../src/runtime/mounts/mounts.ts';

async function configOf(yaml: string) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-expose-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'tollbridge.yaml');
  await writeFile(file, yaml);
  return await readConfig({ env: {}, cwd: dir, file });
}

test('what is exposed stands beside the protocol; a server that clients start has only that and is not mounted', async () => {
  const config = await configOf(`tools:
  files:
    mcp: { command: [server] }
    expose: { allow: ["read_*"], limits: { "*": { calls: 5, per: 1m } } }
  started-elsewhere: { expose: { max_result: 1000, results: [{ find: [secret], then: redact }] } }
bundles: { reading: { tools: ["files/*"], principals: [claude] } }
`);
  expect([...exposedOf(config).keys()]).toEqual(['files', 'started-elsewhere']);
  const { tools, harnesses } = mountsOf(config, adapters);
  expect(tools.map(({ at }) => at)).toEqual(['tools.files']);
  expect(harnesses.map(({ at }) => at)).toEqual(['bundles']);
});

test.each([
  ['tools: { a: { mcp: { command: [x] }, expose: { alow: [b] } } }', /alow/],
  ['tools: { a: { mcp: { command: [x] }, expose: { limits: { b: { calls: 1, per: often } } } } }', /per/],
  ['tools: { a: { mcp: { command: [x] }, expose: { rename: { b: "no spaces" } } } }', /rename/],
  ['bundles: { a: { personas: [b] } }', /tools/],
])('a mistake is reported where it stands: %s', async (yaml, said) => {
  await expect(
    configOf(yaml).then((config) => {
      mountsOf(config, adapters);
    }),
  ).rejects.toThrow(said);
});
