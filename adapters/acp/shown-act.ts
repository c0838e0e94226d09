/**
 * What the arguments of a call show: commands, files, contents, and the least effect these can have. Read from the arguments
 * and the diffs, never from the agent's name for the call.
 */
import {
  COMMAND_NAMES,
  CONTENT_NAMES,
  DIRECTORY_NAMES,
  effectShownBy,
  PATH_NAMES,
  plainName,
  raised,
} from '../../mappings/acp-acts.ts';
import type { Effect, Json } from '../../src/index.ts';
import { listOf, objectOf, textOf, within } from './shapes.ts';

/** The members of a call that are read. */
interface Showing {
  readonly rawInput?: Json;
  readonly content?: readonly Json[];
  readonly locations?: readonly Json[];
}

const DEEPEST = 8;

/** `none` when its arguments show no effect. */
export function shownEffect({ rawInput, content }: Showing): Effect {
  const diff = listOf(content).some((item) => within(item, 'type') === 'diff');
  return raised(effectIn(rawInput, 0), diff ? 'write' : 'none');
}

function effectIn(value: Json | undefined, depth: number): Effect {
  // Nested deeper than any real agent does: the effect cannot be determined.
  if (depth > DEEPEST) return 'unknown';
  if (typeof value === 'string') return effectIn(spelledOut(value), depth + 1);
  if (typeof value !== 'object' || value === null) return 'none';
  let effect: Effect = 'none';
  for (const [name, member] of Object.entries(value)) {
    if (member === null || member === '') continue;
    const shown = Array.isArray(value) ? undefined : effectShownBy(name);
    effect = raised(raised(effect, shown ?? 'none'), effectIn(member, depth + 1));
  }
  return effect;
}

/** Some agents send their arguments as a JSON string. */
function spelledOut(text: string): Json | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === 'object' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Every path the call names: its locations, its diffs, its arguments. */
export function shownPaths(call: Showing): readonly string[] {
  const located = listOf(call.locations).map((location) => within(location, 'path'));
  const diffs = listOf(call.content).map((item) => within(item, 'path'));
  const paths = named(call.rawInput, PATH_NAMES);
  return [...new Set([...located, ...diffs, ...paths].flatMap((path) => textOf(path) ?? []))];
}

/** The contents it would write to this file, one per mention; empty when it shows none. */
export function shownContents(call: Showing, isFile: (path: string) => boolean): readonly string[] {
  const diffs = listOf(call.content).flatMap((item) => {
    const { type, path, newText } = objectOf(item) ?? {};
    return type === 'diff' && typeof path === 'string' && isFile(path) && typeof newText === 'string' ? [newText] : [];
  });
  const contents = named(call.rawInput, CONTENT_NAMES).flatMap((value) => (typeof value === 'string' ? [value] : []));
  return [...diffs, ...contents];
}

/** Whether it shows contents at all, for any file. */
export function showsContents(call: Showing): boolean {
  return (
    listOf(call.content).some((item) => within(item, 'type') === 'diff') ||
    named(call.rawInput, CONTENT_NAMES).some((value) => value !== null && value !== undefined)
  );
}

/** Commands as given: a command line, or a list of words. */
export function shownCommands({ rawInput }: Showing): readonly (string | readonly string[])[] {
  const args = within(rawInput, 'args');
  return named(rawInput, COMMAND_NAMES).flatMap((value): (string | readonly string[])[] => {
    const rest = isWords(args) ? args : undefined;
    if (typeof value === 'string' && value !== '') return rest ? [[value, ...rest]] : [value.trim()];
    return isWords(value) ? [value] : [];
  });
}

export function shownDirectory({ rawInput }: Showing): string | undefined {
  return named(rawInput, DIRECTORY_NAMES).flatMap((value) => textOf(value) ?? [])[0];
}

function isWords(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string');
}

function named(rawInput: Json | undefined, names: readonly string[]): readonly (Json | undefined)[] {
  const input = objectOf(rawInput);
  if (!input) return [];
  const wanted = new Set(names.map(plainName));
  return Object.entries(input).flatMap(([name, value]) => (wanted.has(plainName(name)) ? [value] : []));
}
