/** Where pages send a reader is there: files, headings in them, and each editor that `init` knows. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { EDITORS } from '../../../src/cli/editors/editors.ts';
import { PROJECT } from '../../support/process/project.ts';

const FOLDERS = ['docs', 'adapters', 'src', 'mappings', 'fixtures', 'test', 'bench', 'examples'];
const pages = [
  ...readdirSync(PROJECT),
  ...FOLDERS.flatMap((folder) =>
    readdirSync(join(PROJECT, folder), { recursive: true }).map((file) => join(folder, String(file))),
  ),
].filter((file) => file.endsWith('.md') && !file.includes('node_modules'));

const read = (file: string) => readFileSync(join(PROJECT, file), 'utf8');

/** A heading as it is named in an address. */
const anchors = (text: string) =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

test('every link of a page leads to a file and a heading that are there', () => {
  const dead: string[] = [];
  let count = 0;
  for (const page of pages)
    for (const [, to = ''] of read(page)
      .replace(/```[\s\S]*?```/g, '')
      .matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(to)) continue;
      count += 1;
      const [path = '', heading] = to.split('#');
      const file = path === '' ? page : relative(PROJECT, resolve(PROJECT, dirname(page), path));
      const there = existsSync(join(PROJECT, file)) && (!heading || anchors(read(file)).includes(heading));
      if (!there) dead.push(`${page}: ${to}`);
    }
  expect(count).toBeGreaterThan(100);
  expect(dead).toEqual([]);
});

test('the pages that send a reader to `init` name every editor it knows', () => {
  const speaking = (protocol: string) =>
    EDITORS.filter(({ lists }) =>
      lists({ cwd: '/', home: '/', platform: 'linux', env: {} }).some(({ speaks }) => speaks === protocol),
    ).map(({ name }) => name);
  const missing = (page: string, names: readonly string[]) =>
    names.filter((name) => !new RegExp(`\\b${name}\\b`).test(read(page))).map((name) => `${page}: ${name}`);
  const agents = [...speaking('acp'), 'neovim'];
  expect(agents).toEqual(['zed', 'jetbrains', 'vscode', 'neovim']);
  expect([
    ...missing('docs/for-agents.md', [...EDITORS.map(({ name }) => name), 'neovim']),
    ...missing('docs/acp.md', agents),
    ...missing('docs/mcp.md', speaking('mcp')),
  ]).toEqual([]);
});
