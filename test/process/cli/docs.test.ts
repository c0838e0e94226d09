/** What the pages about the command line tell people to type is typed here, in a shell, against a log that has something in it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { FIRST_RULES } from '../../../src/runtime/config/config.ts';
import { aLog, aShell } from '../../support/process/cli.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const pages = new Map<string, string>();

beforeAll(async () => {
  for (const page of ['commands', 'verify']) pages.set(page, await readFile(join(ROOT, `docs/${page}.md`), 'utf8'));
});

/** Lines of shell blocks, without what is said about them. */
function commandsIn(page: string): readonly string[] {
  const blocks = [...(pages.get(page) ?? '').matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  return blocks
    .flatMap((block) => block.split('\n'))
    .map((line) => line.replace(/ {2,}#.*$/, ''))
    .filter(Boolean);
}

/** The first column of tables, where each command stands in quotes. */
function commandsInTables(page: string): readonly string[] {
  return [...(pages.get(page) ?? '').matchAll(/^\| (`tollbridge [^|]*)\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, command = '']) => command),
  );
}

interface Ran {
  readonly code: number | null;
  readonly said: string;
}

/** Those that stay are stopped once they have said something. */
async function run(line: string, where: Awaited<ReturnType<typeof aShell>>): Promise<Ran> {
  const stays = /--(watch|follow)\b/.test(line);
  const script = `${stays ? 'exec ' : ''}${line}`;
  const child = spawn('bash', ['--norc', '-c', script], { ...where, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said += chunk;
      // What is said beside the answer may come before it listens for Ctrl-C.
      if (stays && stream === child.stdout) child.kill('SIGINT');
    });
  }
  const [code] = await once(child, 'close');
  return { code, said };
}

/** Words in capitals stand for something there is. */
async function aLocation() {
  const { dir, tasks } = await aLog(['read plan', 'send the plan to ana'], { approve: 'leave open' });
  const shell = await aShell();
  const where = { cwd: shell.cwd, env: { ...shell.env, TOLLBRIDGE_DATA: dir } };
  await writeFile(join(where.cwd, 'rules.yaml'), FIRST_RULES);
  await writeFile(
    join(where.cwd, 'tollbridge.yaml'),
    'rules: [{ id: no-removal, when: { effect: delete }, then: block }]\n',
  );
  await mkdir(join(where.cwd, '.config/fish'), { recursive: true });
  await run('tollbridge export --cbor DIR && cp DIR/* . && head -n 1 receipts.jsonl > one.json', where);
  await run('tollbridge witness run heads.jsonl', where);
  const { keys } = JSON.parse(await readFile(join(where.cwd, 'keys.json'), 'utf8'));
  const filled = (line: string) =>
    line
      .replace(/ … /, ' DIR ')
      .replace(/\bTASK\b|\bID\b/, tasks[0] ?? '')
      .replace(/\bKEY\b/, keys[0].kid);
  return { where, filled };
}

test('docs/verify.md', async () => {
  const { where, filled } = await aLocation();
  const lines = [...commandsIn('verify'), ...commandsInTables('verify')];
  expect(lines).toHaveLength(11);
  for (const line of lines) expect({ line, ...(await run(filled(line), where)) }).toMatchObject({ line, code: 0 });
}, 90_000);

test('docs/commands.md', async () => {
  const { where, filled } = await aLocation();
  const lines = commandsIn('commands');
  expect(lines).toHaveLength(14);
  for (const line of lines) expect({ line, ...(await run(filled(line), where)) }).toMatchObject({ line, code: 0 });
}, 90_000);

test('every command of the tree stands in docs/commands.md', async () => {
  const { out } = { out: (await run('tollbridge completion bash', await aShell())).said };
  const paths = [...(/^ {6}(.*)\) at=/m.exec(out)?.[1] ?? '').matchAll(/'([^']+)'/g)].map(([, path = '']) =>
    path.trim(),
  );
  const page = pages.get('commands') ?? '';
  const leaves = paths.filter((path) => !paths.some((other) => other.startsWith(`${path} `)));
  expect(leaves.length).toBeGreaterThan(20);
  const missing = leaves.filter((path) => {
    const [first = '', second] = path.split(' ');
    const row = new RegExp(`^\\| .*\`${first}\\b.*$`, 'gm');
    return ![...page.matchAll(row)].some(([line]) => !second || new RegExp(`\\b${second}\\b`).test(line));
  });
  expect(missing).toEqual([]);
});
