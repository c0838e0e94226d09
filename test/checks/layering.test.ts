import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { checkLayering } from './layering.ts';

const made: string[] = [];
afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

function tree(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'layering-'));
  made.push(root);
  for (const [file, source] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), source);
  }
  return root;
}

function broken(file: string, source: string): string[] {
  return checkLayering(tree({ [file]: source }), []).map(({ line, what, rule }) => `${line} ${what} | ${rule}`);
}

const CORE =
  'src/core imports src/model and src/ports/index.ts, touches the world through ports, and names no other protocol';
const MODEL = 'src/model imports nothing of ours, does no I/O and knows no other protocol';
const TABLE =
  'a mapping table imports src/model, mappings/row.ts and mappings/frames.ts: no I/O, no SDK, no other table';
const ADAPTER =
  'an adapter imports src/index.ts, src/transport, its own mapping table and its own SDK: no other adapter, no store, no policy';

test('every import in this tree is where it may be', () => {
  expect(checkLayering(fileURLToPath(new URL('../..', import.meta.url)))).toEqual([]);
});

describe('what each rule refuses', () => {
  test.each([
    ['src/model/a.ts', "import { x } from '../core/x.ts';", `1 ../core/x.ts | ${MODEL}`],
    ['src/model/a.ts', "\nimport type { x } from '../ports/index.ts';", `2 ../ports/index.ts | ${MODEL}`],
    ['src/model/a.ts', "import { readFile } from 'node:fs/promises';", `1 node:fs/promises | ${MODEL}`],
    ['src/model/a.ts', "import express from 'express';", `1 express | ${MODEL}`],
    [
      'src/ports/index.ts',
      "import type { x } from '../core/x.ts';",
      '1 ../core/x.ts | src/ports/index.ts lists what is in src/ports',
    ],
    ['src/ports/a.ts', "import type { x } from '../core/x.ts';", '1 ../core/x.ts | src/ports imports src/model only'],
    ['src/core/a.ts', "import type { x } from '../ports/a.ts';", `1 ../ports/a.ts | ${CORE}`],
    ['src/core/a.ts', "import { x } from '../store/x.ts';", `1 ../store/x.ts | ${CORE}`],
    ['src/core/a.ts', "import type { x } from '../receipt/x.ts';", `1 ../receipt/x.ts | ${CORE}`],
    ['src/core/a.ts', "export * from '../policy/x.ts';", `1 ../policy/x.ts | ${CORE}`],
    ['src/core/a.ts', "export type { x } from '../runtime/assemble.ts';", `1 ../runtime/assemble.ts | ${CORE}`],
    ['src/core/a.ts', "const x = await import('../transport/x.ts');", `1 ../transport/x.ts | ${CORE}`],
    ['src/core/a.ts', "type X = import('../auth/x.ts').X;", `1 ../auth/x.ts | ${CORE}`],
    ['src/core/a.ts', "const x = require('../demo/x.ts');", `1 ../demo/x.ts | ${CORE}`],
    ['src/core/a.ts', "import '../../adapters/foo/index.ts';", `1 ../../adapters/foo/index.ts | ${CORE}`],
    ['src/core/a.ts', "import fs from 'fs';", `1 fs | ${CORE}`],
    [
      'src/core/a.ts',
      "import { Client } from '@modelcontextprotocol/sdk/client';",
      '1 @modelcontextprotocol/sdk/client | ',
    ],
    ['src/receipt/a.ts', "import '../core/x.ts';", '1 ../core/x.ts | src/receipt imports'],
    ['src/receipt/a.ts', "import 'node:http';", '1 node:http | src/receipt imports'],
    ['src/store/a.ts', "import '../policy/x.ts';", '1 ../policy/x.ts | src/store imports'],
    ['src/policy/a.ts', "import '../core/x.ts';", '1 ../core/x.ts | src/policy imports'],
    ['src/transport/a.ts', "import '../auth/x.ts';", '1 ../auth/x.ts | src/transport imports'],
    ['src/auth/a.ts', "import '../store/x.ts';", '1 ../store/x.ts | src/auth imports'],
    ['src/demo/a.ts', "import '../core/x.ts';", '1 ../core/x.ts | src/demo imports'],
    ['src/console/a.ts', "import '../core/x.ts';", '1 ../core/x.ts | src/console imports'],
    ['mappings/acp.ts', "import '../src/core/x.ts';", `1 ../src/core/x.ts | ${TABLE}`],
    ['mappings/acp.ts', "import './mcp.ts';", `1 ./mcp.ts | ${TABLE}`],
    ['mappings/acp.ts', "import '@agentclientprotocol/sdk';", `1 @agentclientprotocol/sdk | ${TABLE}`],
    [
      'mappings/row.ts',
      "import '../src/core/x.ts';",
      '1 ../src/core/x.ts | what tables are made of imports types of src/model and nothing else',
    ],
    [
      'adapters/index.ts',
      "import './acp/server/door.ts';",
      '1 ./acp/server/door.ts | adapters/index.ts names adapters',
    ],
    ['adapters/acp/index.ts', "import '../mcp/index.ts';", `1 ../mcp/index.ts | ${ADAPTER}`],
    ['adapters/acp/index.ts', "import '../../src/store/x.ts';", `1 ../../src/store/x.ts | ${ADAPTER}`],
    ['adapters/acp/index.ts', "import '../../src/ports/index.ts';", `1 ../../src/ports/index.ts | ${ADAPTER}`],
    ['adapters/acp/index.ts', "import '../../mappings/mcp.ts';", `1 ../../mappings/mcp.ts | ${ADAPTER}`],
    ['adapters/a2a/index.ts', "import '../../mappings/a2afoo.ts';", `1 ../../mappings/a2afoo.ts | ${ADAPTER}`],
    ['src/attic/a.ts', '', '1 src/attic/a.ts | every file is in a room'],
  ])('%s: %s', (file, source, expected) => {
    const found = broken(file, source);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(expected);
  });

  test.each([
    ['const mcpServer = 1;', '1 mcpServer'],
    ["const door = 'speaks ACP';", '1 speaks ACP'],
    ['const x = { a2a: 1 };', '1 a2a'],
    [`const x = \`ahp-\${1}\`;`, '1 ahp-'],
    ["if (door.name === 'acp') stop();", '1 acp'],
  ])('another protocol by name: %s', (source, expected) => {
    for (const room of ['core', 'receipt', 'model']) {
      expect(broken(`src/${room}/a.ts`, source)).toEqual([`${expected} | src/${room} names no other protocol`]);
    }
    expect(broken('src/transport/a.ts', source)).toEqual([]);
  });

  test.each([
    ['const x = event.ext.color;', '1 event.ext.color'],
    ['const x = event?.ext?.color;', '1 event?.ext?.color'],
    ["const x = event.ext['color'];", "1 event.ext['color']"],
    ['const { ext } = event; const x = ext.color;', '1 ext.color'],
    ['const { ext: { color } } = event;', '1 ext: { color }'],
  ])('reading ext: %s', (source, expected) => {
    expect(broken('src/core/a.ts', source)).toEqual([`${expected} | src/core hands ext on and never reads it`]);
  });

  test('a file that does not parse', () => {
    expect(broken('src/core/a.ts', 'const = ;')[0]).toContain('a file that cannot be read cannot be checked');
  });
});

describe('what is fine', () => {
  test.each([
    [
      'src/core/a.ts',
      "import { a } from '../model/a.ts'; import type { b } from '../ports/index.ts'; import './b.ts';",
    ],
    ['src/core/a.ts', "import { createHash } from 'node:crypto'; import { ulid } from 'ulid';"],
    ['src/core/a.ts', '// an MCP server asks here\nconst x = { ...(fact.ext && { ext: fact.ext }) };'],
    ['src/model/a.ts', "const words = ['a2a_handoffs', 'agent.mcp_tool_use', 'mcp_tool_return'];"],
    ['src/model/a.ts', "import { Type } from 'typebox'; import { Ajv2020 } from 'ajv/dist/2020.js';"],
    ['src/core/a.ts', `const key = \`mcp:\${server}\`; const capture = escape(macro);`],
    ['src/receipt/a.ts', "import { readFile } from 'node:fs/promises';"],
    ['src/store/sqlite/index.ts', "import './reading/reader.ts'; import '../../model/a.ts';"],
    ['src/runtime/assemble.ts', "import '../core/a.ts'; import '../store/a.ts'; import '../../adapters/index.ts';"],
    ['src/main.ts', "import './cli/a.ts';"],
    ['src/cli/a.ts', "import '../runtime/assemble.ts'; import '../../adapters/acp/index.ts';"],
    ['mappings/acp.ts', "import { table } from './row.ts'; import { TASK_STATES } from '../src/model/words.ts';"],
    [
      'adapters/index.ts',
      "import { acp } from './acp/index.ts'; import type { Adapter } from '../src/ports/index.ts';",
    ],
    [
      'adapters/acp/server/door.ts',
      "import { x } from '../translate.ts'; import '../../../src/index.ts'; import '../../../src/transport/ndjson/ndjson.ts'; import '../../../mappings/acp.ts'; import '../../../mappings/acp-2.ts'; import '@agentclientprotocol/sdk';",
    ],
    ['test/a.test.ts', "import '../src/core/a.ts'; import '@modelcontextprotocol/sdk';"],
  ])('%s: %s', (file, source) => {
    expect(broken(file, source)).toEqual([]);
  });

  test('an exception, as long as it is needed', () => {
    const root = tree({ 'src/core/a.ts': 'const x = { mcp: 1 };' });
    const exception = { file: 'src/core/a.ts', what: 'mcp', why: 'the format says so' };
    expect(checkLayering(root, [exception])).toEqual([]);
    expect(checkLayering(root, [exception, { ...exception, what: 'acp' }])).toEqual([
      { file: 'src/core/a.ts', line: 0, what: 'acp', rule: 'an exception nobody needs any more is removed' },
    ]);
  });
});
