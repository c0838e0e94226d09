/** One pass over the arguments of an act: each value is classified by its name, or else by its shape. */
import type { ActField, ArgumentRole } from '../../model/act-facts.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { Effect } from '../../model/words.ts';
import { joinArgv } from './commands.ts';
import { isPatch, patchedPaths } from './patches.ts';
import { isFileAddress, isUrl, urlsIn } from './urls.ts';

/** `filePath`, `file_path` and `file-path` are one name. */
export function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** How a redacted text in a record begins. */
const REDACTED = '[redacted';
const MAX_VALUES = 4_000;
const MAX_DEPTH = 16;
/** JSON inside a text is parsed too, up to this length. */
export const MAX_JSON = 65_536;

/** Values while they are collected: in order, each once. */
export class Found {
  readonly commands = new Set<string>();
  readonly paths = new Set<string>();
  readonly urls = new Set<string>();
  readonly contents = new Set<string>();
  readonly hints = { command: new Set<string>(), path: new Set<string>(), url: new Set<string>() };
  readonly undetermined = new Set<ActField>();
  readonly cwds: string[] = [];
  /** Texts of unknown meaning. */
  readonly unplaced: string[] = [];
  /** Words about the act: possibly a command, where none is named. */
  readonly talk: string[] = [];
  shows: Effect | undefined;
}

/** One bounded pass over the arguments: beyond the bound, everything counts as unknown. */
export class Walk {
  tooMuch = false;
  #left = MAX_VALUES;
  readonly #found: Found;
  readonly #roles: ReadonlyMap<string, ArgumentRole>;
  readonly #own: ReadonlyMap<string, ArgumentRole> | undefined;

  constructor(
    found: Found,
    roles: ReadonlyMap<string, ArgumentRole>,
    own: ReadonlyMap<string, ArgumentRole> | undefined,
  ) {
    this.#found = found;
    this.#roles = roles;
    this.#own = own;
  }

  value(value: Json, role: ArgumentRole | undefined, depth: number): void {
    this.#left -= 1;
    if (this.#left < 0 || depth > MAX_DEPTH) this.tooMuch = true;
    if (this.tooMuch) return;
    if (typeof value === 'string') this.#text(value, role, depth);
    else if (Array.isArray(value)) this.#list(value, role, depth);
    else if (typeof value === 'object' && value !== null) this.#members(value as JsonObject, role, depth);
  }

  #members(record: JsonObject, outer: ArgumentRole | undefined, depth: number): void {
    const names = Object.keys(record);
    const roles = names.map((name) => this.#roleOf(name));
    const command = names.findIndex((name, at) => roles[at] === 'command' && typeof record[name] === 'string');
    for (const [at, name] of names.entries()) {
      const value = record[name];
      const role = roles[at];
      if (value === undefined) continue;
      if (looksLikePath(name)) this.#found.hints.path.add(name);
      if (role === 'args') {
        const program = command < 0 ? undefined : (record[names[command] as string] as string);
        if (program !== undefined && isTexts(value)) {
          this.#found.commands.add(`${program} ${joinArgv(value)}`);
          continue;
        }
        if (program !== undefined && typeof value === 'string') {
          this.#found.commands.add(`${program} ${value}`);
          continue;
        }
      }
      // A value inside a classified one has the same class, unless it has a known name of its own.
      const inherits = role === undefined && outer !== 'words' && outer !== 'args' ? outer : role;
      this.value(value, inherits === 'args' ? undefined : inherits, depth + 1);
    }
  }

  #list(list: readonly Json[], role: ArgumentRole | undefined, depth: number): void {
    if (role === 'command' && isTexts(list) && list.length > 0) {
      const line = joinArgv(list);
      this.#found.commands.add(line);
      // Some tools join the words without quotes, and some take each for a command.
      if (list.length === 1 || list.every((word) => /\s/.test(word)))
        for (const word of list) this.#found.commands.add(word);
      else this.#found.hints.command.add(list.join(' '));
      return;
    }
    for (const item of list) this.value(item, role, depth + 1);
  }

  #roleOf(name: string): ArgumentRole | undefined {
    const key = plainName(name);
    return this.#own?.get(key) ?? this.#roles.get(key);
  }

  #text(text: string, role: ArgumentRole | undefined, depth: number): void {
    const { hints } = this.#found;
    if (text === '') return;
    if (text.startsWith(REDACTED)) {
      // The recorded text was redacted, so the original may have been anything.
      for (const list of [hints.command, hints.path, hints.url]) list.add(text);
    }
    switch (role) {
      case 'command':
        this.#found.commands.add(text);
        if (isPatch(text)) this.#patch(text);
        return;
      case 'path':
        if (isUrl(text)) this.#found.urls.add(text);
        else this.#found.paths.add(text);
        return;
      case 'url':
        if (isFileAddress(text)) this.#found.paths.add(text);
        else if (isUrl(text) || !/\s/.test(text)) this.#found.urls.add(text);
        else for (const url of urlsIn(text)) this.#found.urls.add(url);
        return;
      case 'content':
        this.#found.contents.add(text);
        return;
      case 'patch':
        this.#found.contents.add(text);
        this.#patch(text);
        return;
      case 'cwd':
        this.#found.cwds.push(text);
        hints.path.add(text);
        return;
      case 'location':
        if (isUrl(text)) this.#found.urls.add(text);
        else if (looksLikePath(text)) this.#found.paths.add(text);
        else hints.path.add(text);
        return;
      case 'words':
        // Words for people and models: addresses and paths in them can restrict but not allow.
        this.#mentions(text);
        this.#found.talk.push(text);
        return;
      default:
        this.#unknown(text, depth);
    }
  }

  #unknown(text: string, depth: number): void {
    if (text.length <= MAX_JSON && /^\s*[[{]/.test(text)) {
      const inner = parsed(text);
      if (inner !== undefined) {
        this.value(inner, undefined, depth + 1);
        return;
      }
    }
    if (this.#shape(text)) return;
    if (isPatch(text)) {
      this.#patch(text);
      return;
    }
    this.#mentions(text);
    // Numbers, dates and single short words cannot form a command or a path.
    (/^[\w+:-]{1,40}$/.test(text) ? this.#found.talk : this.#found.unplaced).push(text);
  }

  /** Recognizes addresses and paths by their shape. */
  #shape(text: string): boolean {
    if (isUrl(text) && !/\s/.test(text)) this.#found.urls.add(text);
    else if (
      (isFileAddress(text) || /^(?:~[/\\]|\.\.?[/\\]|[A-Za-z]:[\\/]|\\\\|\/[^\s/*])/i.test(text)) &&
      !text.includes('\n') &&
      text.length < 4_096
    ) {
      this.#found.paths.add(text);
    } else if (looksLikePath(text)) this.#found.hints.path.add(text);
    else return false;
    return true;
  }

  #patch(text: string): void {
    const paths = patchedPaths(text);
    if (!paths) this.#found.undetermined.add('path');
    for (const path of paths ?? []) this.#found.paths.add(path);
  }

  #mentions(text: string): void {
    if (text.length > MAX_JSON) return;
    for (const url of urlsIn(text)) this.#found.hints.url.add(url);
    for (const word of text.split(/[\s'"`,;()<>=]+/, 400)) if (looksLikePath(word)) this.#found.hints.path.add(word);
  }
}

/** One word with a slash, a leading dot, or a file extension. */
function looksLikePath(text: string): boolean {
  if (text.length < 2 || text.length > 4_096 || /\s/.test(text)) return false;
  return /^[.~]|[\\/]|\.[A-Za-z][\w-]{0,11}$/.test(text);
}

function isTexts(value: Json | undefined): value is readonly string[] & Json {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' || typeof item === 'number');
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
