/**
 * Parses YAML into plain values and the source position of each. Refuses constructs that YAML allows and authors do not expect.
 */
import { isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import type { Problem } from './problems.ts';
import type { Path } from './read.ts';
import { yamlWords } from './yaml-errors.ts';

export interface SourcePosition {
  readonly line: number;
  readonly column: number;
}
/** The position of a value; with `atKey`, of its name. */
export type Locate = (path: Path, atKey?: boolean) => SourcePosition | undefined;

export interface YamlRules {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  readonly locate: Locate;
}

/** Lines that begin an item of the outermost list. */
export function countItems(text: string): number {
  const first = /^([ \t]*)-[ \t\n]/m.exec(text);
  if (!first) return 0;
  const opening = `\n${first[1] ?? ''}-`;
  let count = 1;
  for (let at = text.indexOf(opening, first.index); at >= 0; at = text.indexOf(opening, at + 1)) count += 1;
  return count;
}

/** A file holds a list of rules, or `rules:` and the list. */
export function parseYamlRules(file: string, text: string): YamlRules {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number): SourcePosition => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const problems = [...document.errors, ...document.warnings].map((error) => ({
    file,
    ...at(error.pos[0]),
    message: yamlWords(error),
  }));
  const root = document.contents as Node | null;
  const wrapped = isMap(root) && root.items.length === 1 && root.has('rules');
  const base: Path = wrapped ? ['rules'] : [];
  const locate: Locate = (path, atKey) => {
    const range = nodeAt(root, [...base, ...path], atKey === true)?.range ?? root?.range;
    return range ? at(range[0]) : undefined;
  };
  if (problems.length > 0) return { value: undefined, problems, locate };
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    return { value: wrapped ? (value as { rules: unknown }).rules : value, problems, locate };
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : 'cannot be read';
    return { value: undefined, problems: [{ file, line: 1, column: 1, message }], locate };
  }
}

/** The deepest node on the way to `path` that exists. */
function nodeAt(root: Node | null, path: Path, atKey: boolean): Node | null {
  let node: Node | null = root;
  for (const [index, step] of path.entries()) {
    let next: unknown;
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === step);
      next = atKey && index === path.length - 1 ? pair?.key : (pair?.value ?? pair?.key);
    } else if (isSeq(node)) next = node.items[step as number];
    if (!isNode(next)) return node;
    node = next;
  }
  return node;
}
