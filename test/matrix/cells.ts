/**
 * What is declared of each cell of the live matrix, in `fixtures/stories/cells.json`: whole, partly and what is lost, or impossible and
 * why. A run fails where a cell comes out otherwise, also where it comes out better.
 */
import { readFileSync } from 'node:fs';
import { ASPECTS, type Aspect } from '../stories/aspects.ts';
import { readStory, STORIES } from '../stories/story.ts';
import type { Backend } from './backends.ts';
import type { Account } from './cell.ts';
import type { Door } from './doors/index.ts';
import { liveStory, reportedIn } from './stories.ts';

interface Line {
  /** Aspects that the account lacks, each with a `loss` on the event it concerns. `*` as the story: every story that has the aspect. */
  readonly loses?: readonly Aspect[];
  /** Aspects that come out otherwise because the protocol has no smaller word. */
  readonly changes?: readonly Aspect[];
  /** Files the client cannot get. */
  readonly missing?: readonly string[];
  /** What the story leaves otherwise. */
  readonly leaves?: object;
  /** The question is answered at the far gateway. */
  readonly there?: boolean;
  readonly impossible?: string;
  readonly why?: string;
}
type Lines = Readonly<Record<string, Line>>;
export const DECLARED = JSON.parse(readFileSync(`${STORIES}cells.json`, 'utf8')) as {
  readonly backends: Readonly<Partial<Record<Backend, Lines>>>;
  readonly doors: Readonly<Partial<Record<Door, Lines>>>;
};

export interface Cell {
  readonly door: Door;
  readonly backend: Backend;
  readonly story: string;
}

function linesOf({ door, backend, story }: Cell): readonly { readonly line: Line; readonly always: boolean }[] {
  const of = [DECLARED.backends[backend], DECLARED.doors[door]].filter((lines) => lines !== undefined);
  return of.flatMap((lines) => [
    ...(lines['*'] ? [{ line: lines['*'], always: true }] : []),
    ...(lines[story] ? [{ line: lines[story], always: false }] : []),
  ]);
}

/** Why there is nothing to try; undefined: the cell has to work. */
export function impossible(cell: Cell): string | undefined {
  const { door, backend, story } = cell;
  if (door === 'ahp' && backend !== 'demo' && backend !== 'ahp')
    return 'An agent of AHP does its work itself: the gateway decides for it and gives nothing to a backend.';
  if (door === 'ahp') return readStory(story).cannot.ahp;
  return linesOf(cell).find(({ line }) => line.impossible)?.line.impossible;
}

export function answeredThere(cell: Cell): boolean {
  return linesOf(cell).some(({ line }) => line.there);
}

/** Everything in which what was seen is not what is declared, in sentences. */
export function surprises(cell: Cell, account: Account): string[] {
  const reported = reportedIn(cell.story);
  const lines = linesOf(cell);
  const of = (name: 'loses' | 'changes', always: boolean) =>
    new Set(lines.filter((each) => each.always === always).flatMap(({ line }) => line[name] ?? []));
  const [maybe, surely] = [true, false].map((always) => new Set([...of('loses', always), ...of('changes', always)]));
  const differs = ASPECTS.filter(
    (aspect) => JSON.stringify(account.aspects[aspect]) !== JSON.stringify(reported[aspect]),
  );
  const found: string[] = [...account.faults];
  for (const aspect of differs)
    if (!maybe?.has(aspect) && !surely?.has(aspect))
      found.push(
        `${aspect}: ${JSON.stringify(account.aspects[aspect])} instead of ${JSON.stringify(reported[aspect])}`,
      );
  for (const aspect of surely ?? [])
    if (!differs.includes(aspect)) found.push(`${aspect} is declared as lost, and is whole`);
  // What is lost is written down where it was lost, and nothing else is.
  const losing = new Set([...of('loses', true), ...of('loses', false)]);
  const noted = new Set(account.loss.map(({ aspect }) => aspect as Aspect));
  // Work that was stopped here may end there later: then nobody is left to compare the two.
  const stopped = account.aspects.state === 'CANCELED';
  for (const aspect of differs)
    if (losing.has(aspect) && !noted.has(aspect) && !stopped) found.push(`${aspect} is lost, and no event says so`);
  for (const aspect of noted)
    if (!differs.includes(aspect)) found.push(`an event says that ${aspect} is lost, and it is whole`);
  const missing = lines.flatMap(({ line }) => line.missing ?? []);
  const files = losing.has('files') ? [] : account.missing.filter((name) => !missing.includes(name));
  for (const name of files) found.push(`the client could not get ${name}`);
  const leaves = Object.assign({}, liveStory(cell.story).leaves, ...lines.map(({ line }) => line.leaves ?? {}));
  if (JSON.stringify(account.left) !== JSON.stringify(leaves)) found.push(`it left ${JSON.stringify(account.left)}`);
  return found;
}

/** What is lost in a cell, for readers: nothing when it is whole. */
export function lossesOf(cell: Cell): readonly string[] {
  const story = liveStory(cell.story);
  return linesOf(cell).flatMap(({ line, always }) => {
    if (!line.why || (always && !concerns(line, story.name))) return [];
    return [line.why];
  });
}

/** Whether a line about every story says anything of this one: what a story does not have cannot be lost in it. */
function concerns({ loses = [], changes = [] }: Line, name: string): boolean {
  const reported = reportedIn(name);
  return [...loses, ...changes].some((aspect) => {
    const value = reported[aspect];
    return Array.isArray(value) ? value.some((each) => each !== null) : Boolean(value);
  });
}
