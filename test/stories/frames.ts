/**
 * Frames as a rendition writes them down, and how real ones are held against them. A placeholder such as `<task_1>` takes
 * whatever stands there at first sight and must stand for the same ever after. Pure.
 */
import type { Json, JsonObject } from '../../src/model/schema.ts';

/** One thing said. `bridge` lines are expected; every other speaker's are played. */
export interface Line {
  readonly from: string;
  /** For `bridge` lines: who hears it, when that is not the client. */
  readonly to?: string;
  /** A channel of its own, such as a stream beside the answers. Order is kept within a channel, not between them. */
  readonly on?: string;
  readonly frame: Json;
}

export type Names = Map<string, Json>;

/** `<any>` takes anything, `<time>` any time; both forget it again. */
const PLACEHOLDER = /<(any|time|[a-z][a-z_]*_\d+)>/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** A frame to be played, with every placeholder replaced by what it stands for. */
export function fill(frame: Json, names: Names): Json {
  return walk(frame, (text) => {
    const whole = nameOf(text);
    if (whole) return known(whole, names);
    return text.replace(new RegExp(PLACEHOLDER, 'g'), (_, name: string) => String(known(name, names)));
  });
}

function known(name: string, names: Names): Json {
  const value = names.get(name);
  if (value === undefined) throw new Error(`<${name}> is played before anything showed what it stands for`);
  return value;
}

/**
 * The frame that came, spelled as the rendition spells it wherever the two agree. Equal to the rendition if and only if
 * the frame is the one that was reported; otherwise what is different shows as it came.
 */
export function asRendered(reported: Json | undefined, came: Json, names: Names): Json {
  if (typeof reported === 'string') return agrees(reported, came, names) ? reported : came;
  if (Array.isArray(reported) && Array.isArray(came)) {
    return came.map((item, index) =>
      index < reported.length ? asRendered(reported[index] as Json, item as Json, names) : item,
    );
  }
  if (isObject(reported) && isObject(came)) {
    return Object.fromEntries(
      Object.entries(came).map(([key, value]) => [key, asRendered(reported[key], value as Json, names)]),
    );
  }
  return came;
}

function agrees(reported: string, came: Json, names: Names): boolean {
  const whole = nameOf(reported);
  if (whole === 'any') return true;
  if (whole === 'time') return typeof came === 'string' && TIME.test(came);
  if (whole) return takes(whole, came, names);
  return typeof came === 'string' && (reported === came || agreesWithin(reported, came, names));
}

function takes(name: string, came: Json, names: Names): boolean {
  const before = names.get(name);
  if (before === undefined) names.set(name, came);
  return before === undefined || JSON.stringify(before) === JSON.stringify(came);
}

/** Placeholders inside a longer text: the text between them has to be there, word for word. */
function agreesWithin(reported: string, came: string, names: Names): boolean {
  const pieces = reported.split(PLACEHOLDER);
  if (pieces.length === 1) return false;
  const pattern = pieces.map((piece, index) => (index % 2 === 0 ? escaped(piece) : '(.+?)')).join('');
  const found = new RegExp(`^${pattern}$`, 's').exec(came);
  if (!found) return false;
  const placeholders = pieces.filter((_, index) => index % 2 === 1);
  return placeholders.every((name, index) => agrees(`<${name}>`, found[index + 1] ?? '', names));
}

/** Every member named in `wanted` is there and the same; what it does not name may be anything. */
export function contains(value: unknown, wanted: unknown): boolean {
  if (!isObject(wanted)) return JSON.stringify(value) === JSON.stringify(wanted);
  return isObject(value) && Object.entries(wanted).every(([key, member]) => contains(value[key], member));
}

/** A frame for a new rendition: what is known by name goes by it, and what nobody can foretell is given a name. */
export function named(frame: Json, names: Names): Json {
  return walk(frame, (text) => {
    const known = [...names].find(([, value]) => value === text);
    if (known) return `<${known[0]}>`;
    if (!UUID.test(text)) return text;
    const name = `uuid_${[...names.keys()].filter((key) => key.startsWith('uuid_')).length + 1}`;
    names.set(name, text);
    return `<${name}>`;
  });
}
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The same value with every text in it rewritten. */
export function walk(value: Json, rewrite: (text: string) => Json): Json {
  if (typeof value === 'string') return rewrite(value);
  if (Array.isArray(value)) return value.map((item) => walk(item as Json, rewrite));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, walk(member as Json, rewrite)]));
}

function nameOf(text: string): string | undefined {
  return new RegExp(`^${PLACEHOLDER.source}$`).exec(text)?.[1];
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
