/**
 * Words this codebase no longer uses, each with the word to write instead: the table of CONTRIBUTING.md as data. Only words that can be
 * found without false alarms are here: `line`, `way`, `plain` and `person` also have an ordinary meaning and are left to reviewers.
 */
export interface RetiredWord {
  readonly words: readonly string[];
  readonly instead: string;
}

/** Not used anywhere: identifiers, comments, strings, documentation, file names. */
export const EVERYWHERE: readonly RetiredWord[] = [
  { words: ['house', 'houses'], instead: 'runtime, gateway, process or installation' },
  { words: ['keeper', 'keepers'], instead: 'system actor, recoversOrphans or secret writer' },
  { words: ['desk', 'desks'], instead: 'task run or endpoint handler' },
  { words: ['seat', 'seats', 'sitter'], instead: 'agent process, handler' },
  { words: ['stint', 'stints'], instead: 'call session or call task' },
  { words: ['parked', 'parking'], instead: 'suspended call, input required' },
  { words: ['watchman'], instead: 'stall detector' },
  { words: ['ruling', 'rulings'], instead: 'decision; authorize' },
  { words: ['lesson', 'lessons'], instead: 'reducer' },
  { words: ['scribe', 'scribes'], instead: 'writer thread' },
  { words: ['sheet', 'sheets'], instead: 'write set' },
  { words: ['shelf', 'shelves'], instead: 'tables' },
  { words: ['lately'], instead: 'recent events' },
  { words: ['crowd', 'crowds'], instead: 'concurrent writers, concurrent clients' },
  { words: ['patience'], instead: 'timeout' },
  { words: ['stranger', 'strangers'], instead: 'unauthenticated caller' },
  { words: ['misunderstood'], instead: 'usage error' },
  { words: ['complaint', 'complaints'], instead: 'error, error output, mistake' },
  { words: ['north', 'south'], instead: 'server, client' },
  { words: ['deed', 'deeds'], instead: 'act, action' },
  {
    words: ['whoever', 'whomever', 'somebody'],
    instead: 'the client, the caller, the agent, the approver or the peer',
  },
  { words: ['tellings'], instead: 'rendered events; fixture' },
];

/** Ordinary English in a sentence, but not a name: an identifier says what it holds. */
export const IN_IDENTIFIERS: readonly RetiredWord[] = [
  { words: ['told', 'telling'], instead: 'rendered, reported or sent' },
  { words: ['heard'], instead: 'received, or the name of the listener' },
  { words: ['given'], instead: 'args, headers, input or whatever the value is' },
  { words: ['place', 'places'], instead: 'location, position, cursor or path' },
  { words: ['awaited'], instead: 'pending work' },
  { words: ['together'], instead: 'batched' },
  { words: ['offered', 'offers'], instead: 'visible tools, supported, protocols' },
  { words: ['acting'], instead: 'action, run command' },
  { words: ['book', 'books'], instead: 'catalog, run reader or task accounts' },
];

/** An identifier that is not ours to name. */
export const FOREIGN_IDENTIFIERS: ReadonlySet<string> = new Set(['Awaited']);

export interface Exception {
  /** A path, or the folder that begins it. */
  readonly file: string;
  readonly word: string;
  readonly why: string;
}

export const EXCEPTIONS: readonly Exception[] = [
  {
    file: 'adapters/a2a/push/configs.ts',
    word: 'house',
    why: 'stored: the id of the key that encrypts push configurations',
  },
  {
    file: 'adapters/mcp/server/call-sessions.ts',
    word: 'stint',
    why: 'stored: begins the binding keys of call sessions',
  },
  { file: 'adapters/harn/', word: 'patience', why: 'a configuration key, host_patience_ms' },
];
