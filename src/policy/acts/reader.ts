/**
 * Reads an act into one vocabulary: its commands, paths, addresses and texts, whatever its agent calls them. Known names come
 * first, the shape of a value second; a value that cannot be classified counts as unknown, never as absent. Nothing is read
 * before it is needed.
 */
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ActFacts, ActField, ActVocabulary, ArgumentRole, ToolFamily } from '../../model/act-facts.ts';
import type { Action } from '../../model/actions.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { Effect } from '../../model/words.ts';
import type { ActReader } from '../../ports/index.ts';
import { isFileAddress, isUrl } from './urls.ts';
import { Found, MAX_JSON, plainName, Walk } from './walk.ts';

type ActInput = Parameters<ActReader>[0];

/** Kinds that may have an effect; the others have no command and no path. */
const READ_KINDS: ReadonlySet<Action['kind']> = new Set([
  'tool',
  'fs.read',
  'fs.write',
  'terminal',
  'handoff',
  'memory.read',
  'memory.write',
  'extension',
  'background',
]);

export function createActReader(vocabulary: ActVocabulary): ActReader {
  const words = compile(vocabulary);
  return (act, of = act.arguments ?? NO_ARGUMENTS) =>
    READ_KINDS.has(act.kind) ? new ReadFacts(act, of, words) : nothing(act, of);
}

function nothing({ cwd, root }: ActInput, of: JsonObject): ActFacts {
  const hints = { command: [], path: [], url: [] };
  const bases = basesOf(cwd, root, []);
  return {
    of,
    commands: [],
    paths: [],
    urls: [],
    contents: [],
    hints,
    undetermined: new Set(),
    bases,
    shows: undefined,
  };
}

interface Words {
  readonly roles: ReadonlyMap<string, ArgumentRole>;
  readonly families: ReadonlyMap<string, Family>;
  readonly vocabulary: ActVocabulary;
}
type Family = Omit<ToolFamily, 'arguments'> & { readonly roles: ReadonlyMap<string, ArgumentRole> };

function compile(vocabulary: ActVocabulary): Words {
  const families = new Map<string, Family>();
  for (const { arguments: own = {}, ...family } of vocabulary.families) {
    for (const tool of family.tools) families.set(plainName(tool), { ...family, roles: rolesOf(own) });
  }
  return { roles: rolesOf(vocabulary.names), families, vocabulary };
}

function rolesOf(names: ActVocabulary['names']): ReadonlyMap<string, ArgumentRole> {
  const roles = new Map<string, ArgumentRole>();
  for (const [role, list] of Object.entries(names))
    for (const name of list) roles.set(plainName(name), role as ArgumentRole);
  return roles;
}

/** A server's prefix does not change what a tool is: `mcp__shell__exec` is `exec`. */
function familyOf(tool: string | undefined, { families }: Words): Family | undefined {
  if (tool === undefined || tool.length > 256) return undefined;
  const whole = families.get(plainName(tool));
  if (whole) return whole;
  const last = tool.split(/__|[./:]/).at(-1);
  return last !== undefined && last !== tool ? families.get(plainName(last)) : undefined;
}

class ReadFacts implements ActFacts {
  readonly of: JsonObject;
  readonly #said: ActInput;
  readonly #words: Words;
  #found: Lists | undefined;

  constructor(act: ActInput, of: JsonObject, words: Words) {
    this.#said = act;
    this.#words = words;
    this.of = of;
  }

  get commands() {
    return this.#lists().commands;
  }
  get paths() {
    return this.#lists().paths;
  }
  get urls() {
    return this.#lists().urls;
  }
  get contents() {
    return this.#lists().contents;
  }
  get hints() {
    return this.#lists().hints;
  }
  get undetermined() {
    return this.#lists().undetermined;
  }
  get bases() {
    return this.#lists().bases;
  }
  get shows() {
    return this.#lists().shows;
  }

  #lists(): Lists {
    if (this.#found) return this.#found;
    const found = collect(this.#said, this.#said.arguments ?? NO_ARGUMENTS, this.#words);
    this.#found = {
      commands: [...found.commands],
      paths: [...found.paths],
      urls: [...found.urls],
      contents: [...found.contents],
      hints: { command: [...found.hints.command], path: [...found.hints.path], url: [...found.hints.url] },
      undetermined: found.undetermined,
      bases: basesOf(this.#said.cwd, this.#said.root, found.cwds),
      shows: found.shows,
    };
    return this.#found;
  }
}
const NO_ARGUMENTS: JsonObject = {};
type Lists = Omit<ActFacts, 'of' | 'open'>;

/** When the agent names no directory: the workspace, and the directory the gateway and its servers run in. */
function basesOf(cwd: string | undefined, root: string | undefined, own: readonly string[]): readonly string[] {
  const start = directory(cwd);
  const home = directory(root);
  const bases = start !== undefined ? [start] : home !== undefined ? [home, process.cwd()] : [process.cwd()];
  if (own.length === 0) return [...new Set(bases)];
  const moved = own.flatMap((dir) => (isAbsolute(dir) ? [dir] : bases.map((base) => `${base}/${dir}`)));
  return [...new Set(moved)];
}

function directory(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (isFileAddress(text)) {
    try {
      return fileURLToPath(text);
    } catch {
      return undefined;
    }
  }
  return isAbsolute(text) ? text : undefined;
}

function collect(act: ActInput, args: JsonObject, words: Words): Found {
  const found = new Found();
  const family = familyOf(act.tool, words);
  const walk = new Walk(found, words.roles, family?.roles);
  walk.value(args as Json, undefined, 0);
  if (walk.tooMuch) for (const field of ['command', 'path', 'url', 'content'] as const) found.undetermined.add(field);
  readTarget(act, found);
  conclude(act, family, found, words);
  return found;
}

function readTarget({ kind, target }: ActInput, found: Found): void {
  if (target === undefined || target === '' || kind === 'handoff') return;
  if (isUrl(target)) found.urls.add(target);
  else if (kind.startsWith('fs.') || isFileAddress(target) || /^(?:[/~.]|[A-Za-z]:[\\/])/i.test(target))
    found.paths.add(target);
  else {
    found.hints.path.add(target);
    found.hints.command.add(target);
  }
}

const NEEDS: ReadonlyMap<string, readonly ActField[]> = new Map([
  ['terminal', ['command']],
  ['fs.read', ['path']],
  ['fs.write', ['path']],
]);

/** Derives what the act must have but does not show, and the effect its arguments show. */
function conclude(act: ActInput, family: Family | undefined, found: Found, { vocabulary }: Words): void {
  const { kind, claims } = act;
  const claimed = claims?.kind === undefined ? undefined : vocabulary.kinds.find((row) => row.kind === claims.kind);
  const needs = new Set([...(NEEDS.get(kind) ?? []), ...(family?.needs ?? []), ...(claimed?.needs ?? [])]);
  if (needs.has('command') && found.commands.size === 0) fromTitle(act, found, vocabulary);
  const executes =
    kind === 'terminal' || found.commands.size > 0 || [act.effect, family?.shows, claimed?.shows].includes('execute');
  // A mounted tool's definition was reviewed by a person; an agent's own tool may do anything with a text.
  const mounted = act.evidence === 'held' && act.definition !== undefined;
  const texts = [...found.unplaced, ...found.talk, ...found.contents];
  if (found.commands.size === 0) {
    for (const text of texts) if (text.length <= MAX_JSON) found.hints.command.add(text);
    if (executes && (!mounted || texts.length > 0)) found.undetermined.add('command').add('path').add('url');
    else if (!mounted && found.unplaced.length > 0 && (act.effect ?? 'unknown') === 'unknown') {
      found.undetermined.add('command');
      if (found.paths.size === 0) found.undetermined.add('path');
    }
  }
  for (const field of needs) if (isMissing(field, found)) found.undetermined.add(field);
  const edits = kind === 'fs.write' || [family?.shows, claimed?.shows].includes('write');
  if (edits && found.contents.size === 0) found.undetermined.add('content');
  const writes = kind === 'fs.write' || (found.contents.size > 0 && found.paths.size > 0);
  found.shows = strongest([
    executes ? 'execute' : undefined,
    writes ? 'write' : undefined,
    family?.shows,
    claimed?.shows,
  ]);
}

function isMissing(field: ActField, found: Found): boolean {
  if (field === 'command') return found.commands.size === 0;
  if (field === 'path') return found.paths.size === 0;
  if (field === 'url') return found.urls.size === 0 && found.hints.url.size === 0;
  return found.contents.size === 0;
}

/** Some agents give the command only in the title of their question. Any other agent's title can restrict but proves nothing. */
function fromTitle({ claims, arguments: args }: ActInput, found: Found, { agents }: ActVocabulary): void {
  const title = claims?.title?.trim();
  if (!title) return;
  const agent = claims?.agent?.toLowerCase();
  const profile =
    agent === undefined ? undefined : agents.find(({ names }) => names.some((name) => agent.includes(name)));
  const marks = profile?.titleIsCommand?.until;
  if (!marks || (args !== undefined && Object.keys(args).length > 0)) {
    found.hints.command.add(title);
    return;
  }
  // The last mark is the agent's own: any text before it may be part of the command.
  const end = Math.max(...marks.map((mark) => title.lastIndexOf(mark)));
  found.commands.add(end > 0 ? title.slice(0, end) : title);
}

const STRENGTH: readonly (Effect | undefined)[] = [undefined, 'none', 'read', 'write', 'delete', 'execute'];

function strongest(shown: readonly (Effect | undefined)[]): Effect | undefined {
  return shown.toSorted((a, b) => STRENGTH.indexOf(b) - STRENGTH.indexOf(a))[0];
}
