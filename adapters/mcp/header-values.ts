/**
 * Header values in this protocol's encoding: as they are where a header allows it, as marked base64 otherwise. Also checks
 * that a header that repeats an argument agrees with the argument.
 */

import type { Json, JsonObject } from '../../src/index.ts';
import { asText, isObject } from '../../src/index.ts';

const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;
const MARKED = /^=\?base64\?(.*)\?=$/;

export function headerValue(text: string): string {
  return PLAIN.test(text) && !MARKED.test(text) ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/** Undefined for a value that is not valid in either encoding. */
export function readHeader(raw: string): string | undefined {
  if (!/^[\x20-\x7e\t]*$/.test(raw)) return undefined;
  const [, coded] = MARKED.exec(raw) ?? [];
  if (coded === undefined) return raw;
  const bytes = Buffer.from(coded, 'base64');
  if (bytes.toString('base64') !== coded) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

interface Repeated {
  readonly header: string;
  readonly path: readonly string[];
}

/** Arguments that a tool's schema asks clients to repeat in `Mcp-Param-*`. */
export function repeatedIn(schema: Json | undefined, path: readonly string[] = []): readonly Repeated[] {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  return Object.entries(properties).flatMap(([key, inner]) => {
    const header = isObject(inner) ? inner['x-mcp-header'] : undefined;
    const here = typeof header === 'string' ? [{ header, path: [...path, key] }] : [];
    return [...here, ...repeatedIn(inner, [...path, key])];
  });
}

/** Cached by schema: an unchanged definition is the same object, and most schemas repeat no argument. */
const repeated = new WeakMap<object, readonly Repeated[]>();

function repeatedBy(schema: Json | undefined): readonly Repeated[] {
  if (!isObject(schema)) return [];
  const known = repeated.get(schema);
  if (known) return known;
  const found = repeatedIn(schema);
  repeated.set(schema, found);
  return found;
}

/** Headers for a call of this tool with these arguments; undefined when there are none. */
export function paramHeaders(schema: Json | undefined, args: JsonObject): Record<string, string> | undefined {
  const wanted = repeatedBy(schema);
  if (wanted.length === 0) return undefined;
  return Object.fromEntries(
    wanted.flatMap(({ header, path }) => {
      const value = at(args, path);
      return value === undefined || value === null
        ? []
        : [[`mcp-param-${header.toLowerCase()}`, headerValue(asText(value))]];
    }),
  );
}

/** The first disagreement between the headers of a call and its body; undefined when there is none. */
export function paramTrouble(
  schema: Json | undefined,
  args: JsonObject,
  headers: Readonly<Record<string, string>>,
): string | undefined {
  for (const { header, path } of repeatedBy(schema)) {
    const value = at(args, path);
    const raw = headers[`mcp-param-${header.toLowerCase()}`];
    if (value === undefined || value === null) {
      // A proxy that routes by headers would otherwise see a different call than the gate decides on.
      if (raw !== undefined) return `Mcp-Param-${header} says what the body does not say`;
      continue;
    }
    if (raw === undefined) return `Mcp-Param-${header} is missing`;
    const said = readHeader(raw);
    if (said === undefined) return `Mcp-Param-${header} cannot be read`;
    const same = typeof value === 'number' ? said.trim() !== '' && Number(said) === value : said === asText(value);
    if (!same) return `Mcp-Param-${header} does not say what the body says`;
  }
  return undefined;
}

function at(args: Json | undefined, path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    args,
  );
}
