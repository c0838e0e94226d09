/** The tools of one server, as last listed. An unchanged tool stays the same object. */
import { type Clock, canonicalJson, type Json, type JsonObject, type Logger, type Skill } from '../../../src/index.ts';
import { distinct, toSkill } from '../translate.ts';

export interface ToolCatalog {
  skills(): readonly Skill[];
  tool(name: string): JsonObject | undefined;
  /**
   * `whole`: the list is complete. Otherwise tools that it does not name stay. True when a definition differs from the known one.
   */
  update(tools: readonly Json[], whole: boolean): boolean;
  /**
   * Whether all calls can be tasks of the extension, which no tool declares for itself. True when that has changed.
   */
  mayBeTasks(yes: boolean): boolean;
  /** False until the list has been read to its end, and again once it is known to have changed. */
  readonly fresh: boolean;
  changed(): void;
}

interface Entry {
  readonly text: string;
  readonly tool: JsonObject;
  readonly skill: Skill;
}

export function createToolCatalog(server: string, { clock, log }: { clock: Clock; log: Logger }): ToolCatalog {
  let entries = new Map<string, Entry>();
  let skills: readonly Skill[] = [];
  let fresh = false;
  let tasks = false;
  const toEntry = (text: string, tool: JsonObject, name: string): Entry => ({
    text,
    tool,
    skill: toSkill(server, { name, tool }, clock.now(), tasks),
  });
  return {
    get fresh() {
      return fresh;
    },
    skills: () => skills,
    tool: (name) => entries.get(name)?.tool,
    changed() {
      fresh = false;
    },
    mayBeTasks(yes) {
      if (tasks === yes) return false;
      tasks = yes;
      entries = new Map([...entries].map(([name, { text, tool }]) => [name, toEntry(text, tool, name)]));
      skills = [...entries.values()].map(({ skill }) => skill);
      return true;
    },
    update(tools, whole) {
      const { tools: unique, refused } = distinct(tools);
      if (refused.length > 0) log.warn({ server, tools: refused }, 'tools whose names could be mistaken are left out');
      const next = new Map(whole ? [] : entries);
      // A tool whose name is no longer distinct is removed.
      for (const name of refused) next.delete(name);
      for (const each of unique) {
        const text = canonicalJson(each.tool);
        const known = entries.get(each.name);
        next.set(each.name, known?.text === text ? known : toEntry(text, each.tool, each.name));
      }
      const same = next.size === entries.size && [...next].every(([name, entry]) => entries.get(name) === entry);
      entries = next;
      skills = [...entries.values()].map(({ skill }) => skill);
      if (whole) fresh = true;
      return !same;
    },
  };
}
