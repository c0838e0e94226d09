/**
 * Text from agents, tools and files on its way to a terminal. Characters that move the cursor, set colours, reverse the
 * reading direction or are invisible are escaped, so that no agent can draw an approval that is not there.
 */
import { brief, visibleText } from '../../model/values/visible-text.ts';

export { brief };

/** Lines and tabs stay; all other invisible characters are escaped. */
export function terminalText(text: string): string {
  return visibleText(text);
}

/** Arguments in short form: `to: ana, text: "the plan"`. */
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

/** The end of an id: enough to tell it apart and to type it. `task_01M7…6GF5R` → `6GF5R`. */
export function shortId(id: string): string {
  return id.slice(-6);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
