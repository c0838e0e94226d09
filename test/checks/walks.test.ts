/** The pages for contributors follow the code: files that exist, names they have, steps of a walk that know each other as the page says. */
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import { PROJECT } from '../support/process/project.ts';

interface Step {
  readonly number: number;
  readonly file: string;
  readonly exports: readonly string[];
  /** Functions and methods inside the file: written `name()`. */
  readonly inside: readonly string[];
  readonly from: string;
}

interface Source {
  readonly exports: ReadonlySet<string>;
  /** The files it imports, and the names it imports from each. */
  readonly imports: ReadonlyMap<string, ReadonlySet<string>>;
  readonly text: string;
}

const page = readFileSync(join(PROJECT, 'docs/architecture.md'), 'utf8');
const walks = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((section) => [section.split('\n', 1)[0] ?? '', section] as const),
);

const quoted = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

function stepsOf(section: string): readonly Step[] {
  return [...section.matchAll(/^\| (\d+) +\|([^|]+)\|([^|]+)\|([^|]+)\|([^|]+)\|$/gm)].map(
    ([, number, file = '', exports = '', text = '', from = '']) => ({
      number: Number(number),
      file: quoted(file)[0] ?? '',
      exports: quoted(exports),
      inside: quoted(text).flatMap((name) => /^(\w+)\(\)$/.exec(name)?.[1] ?? []),
      from: from.trim(),
    }),
  );
}

const sources = new Map<string, Source>();

function sourceOf(file: string): Source {
  const known = sources.get(file);
  if (known) return known;
  const text = readFileSync(join(PROJECT, file), 'utf8');
  const { module, program } = parseSync(file, text);
  const imports = new Map<string, Set<string>>();
  const exports = new Set<string>();
  const note = (request: string, names: readonly string[]) => {
    if (!request.startsWith('.')) return;
    const target = posix.join(posix.dirname(file), request);
    imports.set(target, new Set([...(imports.get(target) ?? []), ...names]));
  };
  for (const { moduleRequest, entries } of module.staticImports)
    note(
      moduleRequest.value,
      entries.flatMap(({ importName }) => importName.name ?? []),
    );
  for (const { entries } of module.staticExports)
    for (const { exportName, importName, moduleRequest } of entries) {
      if (exportName.name) exports.add(exportName.name);
      if (moduleRequest) note(moduleRequest.value, importName.name ? [importName.name] : []);
    }
  new Visitor({
    ImportExpression({ source }) {
      if (source.type === 'Literal' && typeof source.value === 'string') note(source.value, []);
    },
  }).visit(program);
  const source = { exports, imports, text };
  sources.set(file, source);
  return source;
}

function know(one: string, other: string): boolean {
  return one === other || sourceOf(one).imports.has(other) || sourceOf(other).imports.has(one);
}

const LISTS = ['src/index.ts', 'src/ports/index.ts'];

/** The interface is used by its names: imported directly, from a list of the ports, or as a member of a port that hands it out. */
function uses(file: string, port: string): boolean {
  const { imports } = sourceOf(file);
  if (imports.has(port)) return true;
  const names = LISTS.flatMap((list) => [...(imports.get(list) ?? [])]);
  const handedOut = ['src/ports/adapters.ts'].filter((other) => sourceOf(other).imports.has(port));
  return [port, ...handedOut].some((each) => names.some((name) => sourceOf(each).exports.has(name)));
}

function problemOf(step: Step, caller: Step, how: string): string | undefined {
  const [kind = '', via] = [how.replace(/ `.*/, ''), quoted(how)[0]];
  if (kind === '') return know(caller.file, step.file) ? undefined : 'neither imports the other';
  if (!via || !existsSync(join(PROJECT, via))) return `${via} does not exist`;
  const sides = [caller.file, step.file];
  if (kind === 'port') return sides.every((file) => uses(file, via)) ? undefined : `one does not use ${via}`;
  if (kind === 'joined in') return sides.every((file) => know(file, via)) ? undefined : `${via} does not know both`;
  return `"${kind}" is no connection`;
}

/** The steps that each walk has at least, so that a table that cannot be read any more is not taken for a short one. */
const FEWEST: Readonly<Record<string, number>> = {
  'An MCP tool call': 30,
  'An ACP prompt through the relay': 25,
  'An AHP question': 20,
  'A task begins': 9,
  'A task ends': 12,
};
/** The files that a newcomer has to read to follow one call from request to response. */
const MOST_FILES: Readonly<Record<string, number>> = { 'An MCP tool call': 30 };

test('the page has three walks of a message, and how the task of each begins and ends', () => {
  expect([...walks.keys()]).toEqual(Object.keys(FEWEST));
});

describe.each([...walks])('%s', (walk, section) => {
  const steps = stepsOf(section);

  test('is numbered from the first step to the last', () => {
    expect(steps.length).toBeGreaterThanOrEqual(FEWEST[walk] ?? 0);
    expect(steps.map(({ number }) => number)).toEqual(steps.map((_step, at) => at + 1));
  });

  test('every file exists, exports the names the page gives it, and has the functions the page names', () => {
    const wrong = steps.flatMap(({ number, file, exports, inside }) => {
      if (!existsSync(join(PROJECT, file))) return [`${number}: ${file} does not exist`];
      const source = sourceOf(file);
      const called = (name: string) =>
        new RegExp(`\\b${name}(?:<[^(]*>)?\\(|\\b${name}:|\\b${name},|: ${name}\\b`).test(source.text);
      return [
        ...(exports.length === 0 ? [`${number}: no export of ${file} is named`] : []),
        ...exports.filter((name) => !source.exports.has(name)).map((name) => `${number}: ${file} exports no ${name}`),
        ...inside.filter((name) => !called(name)).map((name) => `${number}: ${file} has no ${name}()`),
      ];
    });
    expect(wrong).toEqual([]);
  });

  test('every step is reached from an earlier one, as the page says', () => {
    const wrong = steps.slice(1).flatMap((step) => {
      const [, number, how = ''] = /^(\d+)(?:, (.+))?$/.exec(step.from) ?? [];
      const caller = steps[Number(number) - 1];
      if (!caller || caller.number >= step.number) return [`${step.number}: "${step.from}" names no earlier step`];
      const problem = problemOf(step, caller, how);
      return problem ? [`${step.number} from ${number}: ${problem}`] : [];
    });
    expect(wrong).toEqual([]);
  });

  test('other files the section names exist', () => {
    const named = quoted(section).filter((name) => /^(?:src|adapters|mappings|test)\/.*\.ts$/.test(name));
    expect(named.filter((file) => !existsSync(join(PROJECT, file)))).toEqual([]);
  });

  test('the page says how many files it names, and they are not too many to read', () => {
    const files = new Set(steps.map(({ file }) => file));
    expect(Number(/The walk names (\d+) files/.exec(section)?.[1])).toBe(files.size);
    expect(files.size).toBeLessThanOrEqual(MOST_FILES[walk] ?? Number.POSITIVE_INFINITY);
  });
});

test.each(['CONTRIBUTING.md', 'docs/add-a-protocol.md'])('every file that %s names exists', (name) => {
  const text = readFileSync(join(PROJECT, name), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  const named = [
    ...quoted(text).filter((path) => /^(?:src|adapters|mappings|test|docs)\/[\w./-]+\.(?:ts|md)$/.test(path)),
    ...[...text.matchAll(/\]\(([^)#:]+\.(?:ts|md))\)/g)].map(([, path = '']) => posix.join(posix.dirname(name), path)),
  ];
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((path) => !existsSync(join(PROJECT, path)))).toEqual([]);
});

test('the measure: a connection that does not exist is noticed', () => {
  const step = (file: string): Step => ({ number: 1, file, exports: [], inside: [], from: '' });
  const [http, cedar] = [step('src/transport/http/server.ts'), step('src/policy/cedar/engine.ts')];
  expect(problemOf(cedar, http, '')).toBe('neither imports the other');
  expect(problemOf(cedar, http, 'port `src/ports/http.ts`')).toBe('one does not use src/ports/http.ts');
  expect(problemOf(cedar, http, 'joined in `src/policy/chain.ts`')).toBe('src/policy/chain.ts does not know both');
});
