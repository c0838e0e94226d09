/**
 * Text from agents, tools and files on its way to a terminal. What could move the cursor, colour the screen, turn the reading
 * direction round or not be seen at all is written out instead: nobody may draw an approval that is not there.
 */
import { visibleText } from '../model/visible-text.ts';

/** Lines and tabs stay; everything else that cannot be seen is written out. */
export function plain(text: string): string {
  return visibleText(text);
}

/** On one line, and no longer than anyone reads. */
export function brief(text: string, most = 100): string {
  const line = plain(text).replace(/\s+/g, ' ').trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

/** Arguments as people write them: `to: ana, text: "the plan"`. */
export function briefArguments(args: unknown, most = 100): string {
  if (typeof args !== 'object' || args === null) return args === undefined ? '' : brief(JSON.stringify(args), most);
  const parts = Object.entries(args).map(([name, value]) => `${name}: ${wordOf(value)}`);
  return brief(parts.join(', '), most);
}

function wordOf(value: unknown): string {
  return typeof value === 'string' && /^[\w@./:-]+$/.test(value) ? value : JSON.stringify(value);
}

/** `evt_0000000000000012` → `12`. */
export function eventNumber(id: string): string {
  const digits = /^evt_0*(\d+)$/.exec(id)?.[1];
  return digits ?? id;
}

/** The end of a name: enough to tell it apart and to type it. `task_01M7…6GF5R` → `6GF5R`. */
export function shortId(id: string): string {
  return id.slice(-6);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
