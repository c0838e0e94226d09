/**
 * Fails where a retired word has come back, and names file, line, word and replacement. Identifiers are split into their parts; comments,
 * strings, documentation and file names are read as text. Of JSON only descriptions are read: the rest is data.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import {
  EVERYWHERE,
  EXCEPTIONS,
  type Exception,
  FOREIGN_IDENTIFIERS,
  IN_IDENTIFIERS,
  type RetiredWord,
} from './retired-words.ts';

export interface FoundWord {
  readonly file: string;
  readonly line: number;
  readonly word: string;
  readonly instead: string;
}

/** Recorded traffic and published schemas are as others wrote them, the pages about them are not; the two files of the check itself name every retired word. */
const NOT_READ = /^fixtures\/(?!policies\/|.*README\.md$)|^test\/checks\/words\/|(^|\/)package(-lock)?\.json$/;
const READ = /\.(tsx?|[mc]?js|md|html|css|json|ya?ml|py|go|java|rs|toml|conf|service)$|Dockerfile$/;

const indexed = (rows: readonly RetiredWord[]) =>
  new Map(rows.flatMap(({ words, instead }) => words.map((word) => [word, instead] as const)));
const anywhere = indexed(EVERYWHERE);
const inNames = indexed(IN_IDENTIFIERS);

export function retiredWordsIn(file: string, text: string): readonly FoundWord[] {
  const lineAt = createLineCounter(text);
  const found = (word: string, instead: string | undefined, at: number): readonly FoundWord[] =>
    instead === undefined ? [] : [{ file, line: lineAt(at), word, instead }];
  const read = file.endsWith('.json') ? descriptionsOf(text) : [{ text, at: 0 }];
  const parts = read.flatMap((piece) => partsOf(piece.text).map(({ part, at }) => ({ part, at: piece.at + at })));
  // A file is parsed only where its text has such a word at all: parsing takes far longer than reading.
  const parsed = /\.(ts|mjs)$/.test(file) && parts.some(({ part }) => inNames.has(part));
  return [
    ...partsOf(file).flatMap(({ part }) => found(part, anywhere.get(part) ?? inNames.get(part), 0)),
    ...parts.flatMap(({ part, at }) => found(part, anywhere.get(part), at)),
    ...(parsed ? identifiersOf(file, text) : []).flatMap(({ name, at }) =>
      partsOf(name).flatMap(({ part }) => found(part, inNames.get(part), at)),
    ),
  ].sort((a, b) => a.line - b.line);
}

export function retiredWords(root: string, exceptions: readonly Exception[] = EXCEPTIONS): readonly FoundWord[] {
  const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n');
  const files = tracked.filter((file) => READ.test(file) && !NOT_READ.test(file));
  return files
    .flatMap((file) => retiredWordsIn(file, readFileSync(join(root, file), 'utf8')))
    .filter((found) => !exceptions.some((exception) => isExcepted(found, exception)));
}

export const isExcepted = (found: FoundWord, exception: Exception): boolean =>
  found.file.startsWith(exception.file) && found.word === exception.word;

/** Words in lower case; `openHouse`, `OPEN_HOUSE` and `open-house` have the same two parts. */
function partsOf(text: string): readonly { readonly part: string; readonly at: number }[] {
  return [...text.matchAll(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g)].map(({ 0: part, index }) => ({
    part: part.toLowerCase(),
    at: index,
  }));
}

function descriptionsOf(json: string) {
  return [...json.matchAll(/"description": *"((?:[^"\\]|\\.)*)"/g)].map(({ 0: whole, 1: text = '', index }) => ({
    text,
    at: index + whole.length - text.length - 1,
  }));
}

function identifiersOf(file: string, source: string) {
  const names: { readonly name: string; readonly at: number }[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) visit(each);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const { type, name, start } = value as { type?: unknown; name?: unknown; start?: unknown };
    const isName = (type === 'Identifier' || type === 'PrivateIdentifier') && typeof name === 'string';
    if (isName && !FOREIGN_IDENTIFIERS.has(name)) names.push({ name, at: Number(start) });
    for (const member of Object.values(value)) visit(member);
  };
  visit(parseSync(file, source).program);
  return names;
}

function createLineCounter(text: string): (at: number) => number {
  const ends = [...text.matchAll(/\n/g)].map(({ index }) => index);
  return (at) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) < at) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = retiredWords(fileURLToPath(new URL('../../..', import.meta.url)));
  for (const { file, line, word, instead } of found) {
    process.stdout.write(`${file}:${line}: "${word}" is retired; write: ${instead}\n`);
  }
  process.stdout.write(found.length === 0 ? 'words: no retired word\n' : `words: ${found.length} retired words\n`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
