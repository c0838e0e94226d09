/**
 * Matches patterns against what an act touches. A restricting rule matches any value in any spelling; an allowing one must match
 * all of them, as resolved. "Perhaps" is an answer too: an unknown value is not the same as an absent one.
 */
import { ACT_FIELDS, type ActFacts, type ActField } from '../../model/act-facts.ts';
import type { Json } from '../../model/schema.ts';
import type { ActReader } from '../../ports/index.ts';
import { globPattern } from '../cedar/text.ts';
import type { Pattern } from '../rules/glob.ts';
import { type CommandForms, commandForms } from './commands.ts';
import { createDisk, createDiskSnapshot, type Disk, type Keep } from './disk.ts';
import { type Meeting, meets, solid } from './holes.ts';
import { folded, type PathForms, pathForms, patternFrom, realPattern, withoutLead } from './paths.ts';
import { canonicalUrl, urlSpellings, urlsIn } from './urls.ts';

/** Sets of patterns in the context: those that any value matches, those that all values match. */
export const PATTERN_SETS: readonly string[] = ACT_FIELDS.flatMap((field) => [`any_${field}`, `all_${field}`]);

/** One name for several globs, any of which may match. */
export function patternName(globs: readonly string[]): string {
  return globs.join('\n');
}

export interface Matcher {
  /** Takes one of the sets, and a pattern's name. */
  meeting(set: string, name: string): Meeting;
  /** The field as Cedar sees it. */
  value(field: 'command' | 'content' | 'paths' | 'urls'): Json | undefined;
}

/** A cache, collected with the facts: the rules and the Cedar entities of one act ask for the same matcher. */
const matchers = new WeakMap<ActFacts, Matcher>();

export function matcherOf(facts: ActFacts): Matcher {
  let matcher = matchers.get(facts);
  if (!matcher) {
    matcher = createMatcher(facts, createDisk());
    matchers.set(facts, matcher);
  }
  return matcher;
}

/** Reads many acts as they are on one state of the disk. The act that was read last is not read again. */
export function readOnSnapshot(read: ActReader): ActReader {
  const disk = createDiskSnapshot();
  let last: { readonly act: Parameters<ActReader>[0]; readonly facts: ActFacts } | undefined;
  return (act, of = act.arguments) => {
    if (last?.act === act && last.facts.of === of) return last.facts;
    const facts = read(act, of);
    matchers.set(facts, createMatcher(facts, disk));
    last = { act, facts };
    return facts;
  };
}

/** With more values than this, they are not compared one by one. */
const MAX_VALUES = 512;
const MAX_HINTS = 256;

function createMatcher(facts: ActFacts, disk: Disk): Matcher {
  const answers = new Map<string, Meeting>();
  let commands: readonly CommandForms[] | undefined;
  let guessed: readonly CommandForms[] | undefined;
  let paths: readonly PathForms[] | undefined;
  let locations: readonly PathForms[] | undefined;
  const commandsOf = () => (commands ??= facts.commands.slice(0, MAX_VALUES).map((line) => commandForms(solid(line))));
  const guessedOf = () =>
    (guessed ??= facts.hints.command.slice(0, MAX_HINTS).map((line) => commandForms(solid(line))));
  let forms: Keep<PathForms> | undefined;
  const formsOf = (path: string) => {
    forms ??= disk.set(facts.bases.join('\0'));
    return forms(path, () => pathForms(path, facts.bases, disk));
  };
  const pathsOf = () => (paths ??= facts.paths.slice(0, MAX_VALUES).map((path) => formsOf(solid(path))));
  /** Words of commands may be files; those with holes may be several. */
  const locationsOf = () =>
    (locations ??= [
      ...facts.hints.path.map(solid),
      ...commandsOf().flatMap(({ words }) => words),
      ...(facts.commands.length === 0 ? guessedOf().flatMap(({ words }) => words) : []),
    ]
      .slice(0, MAX_HINTS)
      .map(formsOf));

  function any(field: ActField, globs: readonly string[]): Meeting {
    const patterns = globs.map((glob) => globPattern(folded(glob)));
    const least = facts.open || facts.undetermined.has(field) || tooMany(field, facts) ? 'maybe' : 'no';
    switch (field) {
      case 'command':
        return best(
          patterns,
          [...commandsOf(), ...guessedOf()].flatMap(({ spellings }) => spellings.map(folded)),
          least,
        );
      case 'path':
        return anyPath(patterns, [...pathsOf(), ...locationsOf()], { bases: facts.bases, disk }, least);
      case 'url': {
        const said = [...facts.urls, ...facts.hints.url, ...facts.commands.flatMap(urlsIn)];
        return best(patterns, said.slice(0, MAX_VALUES).flatMap(urlSpellings), least);
      }
      case 'content':
        return best(patterns, facts.contents.map(folded), least);
    }
  }

  function all(field: ActField, globs: readonly string[]): boolean {
    if (facts.open) return true;
    if (facts.undetermined.has(field) || tooMany(field, facts)) return false;
    const patterns = globs.map((glob) => globPattern(folded(glob)));
    const fits = (text: string | undefined) =>
      text !== undefined && patterns.some((pattern) => meets(pattern, text) === 'yes');
    if (field === 'command') return every(commandsOf(), (forms) => allowed(forms, fits));
    // A command can have effects beyond the paths and addresses beside it.
    if (field !== 'content' && facts.commands.length > 0) return false;
    if (field === 'url') return every(facts.urls, (url) => fits(canonicalUrl(url)));
    if (field === 'content') return every(facts.contents, (text) => fits(folded(text)));
    return every(pathsOf(), (forms) => leadsWithin(patterns, forms, disk));
  }

  return {
    meeting(set, name) {
      const key = `${set}\n${name}`;
      const known = answers.get(key);
      if (known) return known;
      const field = set.slice(4) as ActField;
      const globs = name.split('\n');
      const answer = set.startsWith('any_') ? any(field, globs) : all(field, globs) ? 'yes' : 'no';
      answers.set(key, answer);
      return answer;
    },
    value(field) {
      switch (field) {
        case 'command':
          return facts.commands.length > 0 ? facts.commands.join('\n') : undefined;
        case 'content':
          return facts.contents.length > 0 ? facts.contents.join('\n') : undefined;
        case 'urls':
          return facts.urls.flatMap((url) => canonicalUrl(url) ?? url);
        case 'paths':
          return [...new Set(pathsOf().flatMap(({ leads }) => leads.flatMap(({ lexical, real }) => [lexical, real])))];
      }
    },
  };
}

function tooMany(field: ActField, { commands, paths, urls, hints }: ActFacts): boolean {
  switch (field) {
    case 'command':
      return commands.length > MAX_VALUES || hints.command.length > MAX_HINTS;
    case 'path':
      return paths.length > MAX_VALUES || hints.path.length > MAX_HINTS;
    case 'url':
      return urls.length + hints.url.length > MAX_VALUES;
    case 'content':
      return false;
  }
}

function every<T>(list: readonly T[], test: (item: T) => boolean): boolean {
  return list.length > 0 && list.every(test);
}

function best(patterns: readonly Pattern[], texts: readonly string[], least: Meeting): Meeting {
  let answer = least;
  for (const text of texts) {
    for (const pattern of patterns) {
      const meeting = meets(pattern, text);
      if (meeting === 'yes') return meeting;
      if (meeting === 'maybe') answer = meeting;
    }
  }
  return answer;
}

/** Nothing in the line but its commands has an effect, and each of them is allowed, or is a shell that runs only allowed ones. */
function allowed({ simple, more }: CommandForms, fits: (text: string) => boolean): boolean {
  return !more && every(simple, ({ text, inside }) => fits(text) || (inside !== undefined && allowed(inside, fits)));
}

function anyPath(
  patterns: readonly Pattern[],
  forms: readonly PathForms[],
  { bases, disk }: { readonly bases: readonly string[]; readonly disk: Disk },
  least: Meeting,
): Meeting {
  const wanted = patterns.flatMap((pattern) => {
    const meant = bases.map((base) => patternFrom(pattern, base));
    const short = withoutLead(pattern);
    const real = meant.map((one) => realPattern(one, disk));
    return [...new Set([pattern, ...meant, ...real, ...(short ? [short] : [])])];
  });
  let answer = least;
  for (const { spellings, ignoresCase } of forms) {
    const [texts, tests] = ignoresCase ? [spellings.map(lower), wanted.map(lowered)] : [spellings, wanted];
    answer = best(tests, texts, answer);
    if (answer === 'yes') return answer;
  }
  return answer;
}

/** By its text and through its links, from every possible base directory, the path leads to where the pattern allows. */
function leadsWithin(patterns: readonly Pattern[], { leads }: PathForms, disk: Disk): boolean {
  return leads.every(({ base, lexical, real }) => {
    const meant = patterns.map((pattern) => patternFrom(pattern, base));
    const wanted = [...meant, ...meant.map((one) => realPattern(one, disk))];
    return [lexical, real].every((path) => wanted.some((pattern) => meets(pattern, path) === 'yes'));
  });
}

function lower(text: string): string {
  return text.toLowerCase();
}

function lowered(pattern: Pattern): Pattern {
  return pattern.map((part) => (typeof part === 'string' ? part.toLowerCase() : part));
}
