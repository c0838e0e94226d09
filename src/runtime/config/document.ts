/**
 * The text of `tollbridge.yaml` as a value that knows the line and column of each member. Every error in a member is
 * reported with them; a value that does not match its schema never gets past here.
 */
import { isMap, isScalar, LineCounter, parseDocument, type Document as YamlDocument } from 'yaml';
import { Fault } from '../../model/faults.ts';
import type { Static, TSchema } from '../../model/type.ts';
import { mistakeIn } from '../../model/validate.ts';
import { yamlWords } from '../../policy/rules/yaml-errors.ts';
import { asWord, fillIn } from './environment.ts';
import { inWords } from './mistakes.ts';
import { type ConfigFile, ConfigShape } from './shape.ts';

export interface Where {
  /** `file:line:column` of a member's value, or of its name. */
  (path: readonly string[], atKey?: boolean): string;
  /** The value came from the environment: it is never shown, and converted to a number when the schema wants one. */
  readonly fromOutside?: (path: readonly string[]) => boolean;
}

export interface Document {
  readonly value: unknown;
  /** Position of a member, or of its parent when the member is missing. */
  readonly where: Where;
}

export function readDocument(text: string, name: string, env: NodeJS.ProcessEnv, used?: Map<string, string>): Document {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const position = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${name}:${line}:${col}`;
  };
  const [syntax] = document.errors;
  if (syntax) {
    const line = text.split('\n')[lines.linePos(syntax.pos[0]).line - 1] ?? '';
    const quotes = line.includes('${') ? `; what stands in braces needs quotes: "\${NAME}"` : '';
    throw wrong(position(syntax.pos[0]), `${yamlWords(syntax)}${quotes}`);
  }
  const missing = (name: string, offset: number) =>
    wrong(
      position(offset),
      `${name} is not set in the environment; set it, or write \${${name}:-...} with what to use instead`,
    );
  const filled = fillIn(document, env, missing, used);
  const where = (path: readonly string[], atKey?: boolean) => {
    const key = atKey ? keyAt(document, path) : undefined;
    if (key) return position(key[0]);
    for (let depth = path.length; depth > 0; depth -= 1) {
      const node = document.getIn(path.slice(0, depth), true) as { range?: [number, number, number] } | undefined;
      if (node?.range) return position(node.range[0]);
    }
    return position(document.contents?.range?.[0] ?? 0);
  };
  const fromOutside = (path: readonly string[]) => filled.has(document.getIn(path, true));
  return { value: document.toJS() ?? {}, where: Object.assign(where, { fromOutside }) };
}

type Range = readonly [number, number, number];

function keyAt(document: YamlDocument, path: readonly string[]): Range | undefined {
  const parent: unknown = path.length > 1 ? document.getIn(path.slice(0, -1), true) : document.contents;
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === path.at(-1));
  return isScalar(pair?.key) ? (pair.key.range ?? undefined) : undefined;
}

export function checkDocument({ value, where }: Document): ConfigFile {
  return checkSection(ConfigShape, value, where, []);
}

/** A section as its type; a mistake in it is reported with its position and what to write instead. */
export function checkSection<T extends TSchema>(
  schema: T,
  value: unknown,
  where: Where,
  at: readonly string[],
): Static<T> {
  let now = value;
  for (;;) {
    const mistake = mistakeIn(schema, now);
    if (!mistake) return now as Static<T>;
    const inside = mistake.instancePath.split('/').slice(1);
    const foreign = where.fromOutside?.([...at, ...inside]) ?? false;
    const meant = foreign && mistake.keyword === 'type' ? asWord(mistake.data) : undefined;
    if (meant === undefined) {
      const { path, atKey, sentence } = inWords(foreign ? { ...mistake, data: HIDDEN } : mistake, value, at);
      throw wrong(where([...at, ...path], atKey), sentence);
    }
    now = replaced(now, inside, meant);
  }
}

/** Shown instead of a value that may be a secret. */
const HIDDEN = 'what the environment says';

function replaced(value: unknown, [step, ...rest]: readonly string[], by: unknown): unknown {
  if (step === undefined) return by;
  if (Array.isArray(value))
    return value.map((each, index) => (index === Number(step) ? replaced(each, rest, by) : each));
  const members = value as Readonly<Record<string, unknown>>;
  return { ...members, [step]: replaced(members[step], rest, by) };
}

/** Adds the section's position to a fault thrown while it is opened. */
export function openAt<T>(open: () => T, where: Where, at: readonly string[]): T {
  try {
    return open();
  } catch (cause) {
    if (!(cause instanceof Fault)) throw cause;
    throw wrong(where([...at, ...(cause.param ?? '').split('/').filter(Boolean)]), cause.message);
  }
}

export function wrong(position: string, message: string): Fault {
  return new Fault('invalid_request', `${position}: ${message}`);
}
