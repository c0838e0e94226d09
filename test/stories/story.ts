/** Stories as they lie in `fixtures/stories`: what happens, the world it needs, and its renditions. Reads files, nothing more. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CoreEvent } from '../../src/model/events.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import type { JsonObject } from '../../src/model/schema.ts';
import type { Jwks } from '../../src/receipt/seal/public-keys.ts';
import type { Line } from './frames.ts';

export const STORIES = fileURLToPath(new URL('../../fixtures/stories/', import.meta.url));
const TELLERS = fileURLToPath(new URL('./tellers/', import.meta.url));

export interface StoryWorld {
  /** What is said to the demo agent. */
  readonly says: string;
  /** Short rules, as a configuration holds them. None: nothing is forbidden and nothing is asked. */
  readonly rules?: readonly JsonObject[];
  /** The persona the session is opened with. */
  readonly persona?: JsonObject;
  /** Other agents in the gateway, by name. */
  readonly helpers?: readonly string[];
  /** Nobody goes past this pause until the story lets them; pauses of agents and tools are counted together, from 1. */
  readonly hold_at_pause?: number;
}

/** An event by some of its members; what is not named may be anything. `held`: the agent waits at the held pause. */
export type Until = 'held' | { readonly event: string; readonly payload?: JsonObject };

/** What people and time do, one after the other. The work goes on by itself in between. */
export type Step =
  | { readonly until: Until }
  | { readonly pass_ms: number }
  | { readonly answer: { readonly approved?: boolean; readonly value?: string; readonly reason?: string } }
  | { readonly cancel: { readonly reason: string } }
  /** The reader goes away once it has this many events of the task. */
  | { readonly drop_reader_after: number }
  /** It comes back and goes on after the last event it has. */
  | { readonly read_on: true }
  | { readonly release: true }
  | { readonly download: { readonly name: string; readonly text: string } };

export interface Story {
  readonly name: string;
  readonly tells: string;
  readonly world: StoryWorld;
  readonly steps: readonly Step[];
  /** What the demo tools hold when it is over: mails that went out, and notes as they stand. */
  readonly leaves: {
    readonly outbox: readonly { readonly to: string; readonly text: string }[];
    readonly notes: Readonly<Record<string, string>>;
  };
  /** Protocols that cannot tell this story, and why. */
  readonly cannot: Readonly<Record<string, string>>;
}

export function storyNames(): string[] {
  return readdirSync(STORIES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

export function readStory(name: string): Story {
  const path = `${STORIES}${name}/story.json`;
  if (!existsSync(path)) throw new Error(`there is no story ${name}; there are ${storyNames().join(', ')}`);
  return JSON.parse(readFileSync(path, 'utf8')) as Story;
}

/** The log as the story tells it: every event of its workspace, in order. */
export function readCore(name: string): CoreEvent[] {
  return readLines<CoreEvent>(`${name}/core.jsonl`);
}

export function readRendition(name: string, protocol: string): Line[] {
  return readLines<Line>(`${name}/${protocol}.jsonl`);
}

/** Receipts of the story's tasks by their file: `receipt.json` is that of the task people gave. */
export function readReceipts(name: string): Record<string, Receipt> {
  const files = readdirSync(`${STORIES}${name}`).filter((file) => /^receipt.*\.json$/.test(file));
  return Object.fromEntries(
    files.map((file) => [file, JSON.parse(readFileSync(`${STORIES}${name}/${file}`, 'utf8')) as Receipt]),
  );
}

/** Public halves of the key the stories are signed with. */
export function readKeys(): Jwks {
  return JSON.parse(readFileSync(`${STORIES}keys.json`, 'utf8')) as Jwks;
}

export function receiptFile(taskId: string, of: string): string {
  return taskId === of ? 'receipt.json' : `receipt.${taskId}.json`;
}

/** Protocols in which stories can be told: one file each. */
export function protocols(): string[] {
  return readdirSync(TELLERS)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.slice(0, -'.ts'.length))
    .sort();
}

/** Protocols for which a story has a rendition. */
export function renderedIn(name: string): string[] {
  return readdirSync(`${STORIES}${name}`)
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => file.slice(0, -'.jsonl'.length))
    .sort();
}

function readLines<T>(path: string): T[] {
  const file = `${STORIES}${path}`;
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => (line ? [JSON.parse(line) as T] : []));
}
