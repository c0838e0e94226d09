/**
 * The tools of one server, as last listed. A server may list other tools to callers of the other era, and a program that was started
 * for one session has tools of its own: a list belongs to the source that sent it, and the catalog is the union of all. An unchanged
 * tool stays the same object.
 */
import { type Clock, canonicalJson, type Json, type JsonObject, type Logger, type Skill } from '../../../src/index.ts';
import { distinct, toSkill } from '../translate.ts';

export interface ToolCatalog {
  skills(): readonly Skill[];
  tool(name: string): JsonObject | undefined;
  /** Whether the server has ever listed a tool of this name or of one that could be mistaken for it, also one that was left out. */
  hasListed(name: string): boolean;
  /**
   * `whole`: the list is complete. Otherwise tools that it does not name stay. True when the union has changed.
   */
  update(source: string, tools: readonly Json[], whole: boolean): boolean;
  /**
   * Whether all calls can be tasks of the extension, which no tool declares for itself. True when that has changed.
   */
  mayBeTasks(yes: boolean): boolean;
  /** False until a list has been read to its end, and again once one is known to have changed. */
  readonly fresh: boolean;
  /** The list of one source has changed, or those of all. */
  changed(source?: string): void;
  /** The source whose list has changed, if it is not every source's. */
  stale(): string | undefined;
  /** The source lists no more. The last list of all stays. True when the union has changed. */
  gone(source: string): boolean;
}

interface Entry {
  /** Counted up. Of two definitions of one tool the later counts, so that a change in one source shows although others have none. */
  readonly count: number;
  readonly text: string;
  readonly tool: JsonObject;
  readonly skill: Skill;
}
type Entries = ReadonlyMap<string, Entry>;

export function createToolCatalog(server: string, { clock, log }: { clock: Clock; log: Logger }): ToolCatalog {
  /** Nearly all sources list the same tools: only lists that differ from this one are kept. */
  let first: { readonly source: string; readonly entries: Entries; gone: boolean } | undefined;
  const others = new Map<string, Entries>();
  const stale = new Set<string>();
  let allStale = true;
  let union: Entries = new Map();
  const names = new Set<string>();
  let skills: readonly Skill[] = [];
  let tasks = false;
  let made = 0;
  const toEntry = (text: string, tool: JsonObject, name: string, count = ++made): Entry => ({
    count,
    text,
    tool,
    skill: toSkill(server, { name, tool }, clock.now(), tasks),
  });

  /** True when it differs from the last one. */
  function unite(): boolean {
    const next = others.size === 0 && first ? first.entries : new Map(first?.entries);
    for (const entries of others.values()) {
      for (const [name, entry] of entries) {
        if (entry.count > (next.get(name)?.count ?? 0)) (next as Map<string, Entry>).set(name, entry);
      }
    }
    const changed = !same(next, union);
    union = next;
    if (changed) skills = [...union.values()].map(({ skill }) => skill);
    return changed;
  }

  function put(source: string, entries: Entries, whole: boolean): void {
    if (whole && allStale) others.clear();
    if (!first || first.source === source || first.gone || (whole && allStale)) {
      first = { source, entries, gone: false };
      others.delete(source);
    } else if (same(entries, first.entries)) others.delete(source);
    else others.set(source, entries);
  }

  return {
    get fresh() {
      return !allStale && stale.size === 0;
    },
    skills: () => skills,
    tool: (name) => union.get(name)?.tool,
    hasListed: (name) => names.has(name.toLowerCase()),
    changed(source) {
      if (source === undefined) allStale = true;
      else stale.add(source);
    },
    stale: () => (allStale ? undefined : stale.values().next().value),
    gone(source) {
      stale.delete(source);
      if (first?.source === source) first.gone = true;
      return others.delete(source) && unite();
    },
    mayBeTasks(yes) {
      if (tasks === yes) return false;
      tasks = yes;
      const again = (entries: Entries) =>
        new Map([...entries].map(([name, { text, tool, count }]) => [name, toEntry(text, tool, name, count)]));
      if (first) first = { ...first, entries: again(first.entries) };
      for (const [source, entries] of others) others.set(source, again(entries));
      unite();
      return true;
    },
    update(source, tools, whole) {
      const { tools: unique, refused } = distinct(tools);
      if (refused.length > 0) log.warn({ server, tools: refused }, 'tools whose names could be mistaken are left out');
      const own = others.get(source) ?? first?.entries;
      const next = new Map(whole ? [] : own);
      // A tool whose name is no longer distinct is removed.
      for (const name of refused) {
        next.delete(name);
        names.add(name.toLowerCase());
      }
      for (const each of unique) {
        names.add(each.name.toLowerCase());
        const text = canonicalJson(each.tool);
        const known = [own, first?.entries, union].map((entries) => entries?.get(each.name));
        next.set(each.name, known.find((entry) => entry?.text === text) ?? toEntry(text, each.tool, each.name));
      }
      put(source, next, whole);
      if (whole) {
        stale.delete(source);
        allStale = false;
      }
      return unite();
    },
  };
}

function same(one: Entries, other: Entries): boolean {
  return one === other || (one.size === other.size && [...one].every(([name, entry]) => other.get(name) === entry));
}
