/**
 * `npx tsx test/stories/tell.ts <story> [protocol] [--write]`: performs a story and prints what happened, as its fixtures
 * would hold it. Only `--write` changes them, and what it wrote is to be read before it is trusted.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { CoreEvent } from '../../src/model/events.ts';
import type { Json, JsonObject } from '../../src/model/schema.ts';
import { type Performance, perform } from './perform.ts';
import { readStory, STORIES } from './story.ts';

const { values, positionals } = parseArgs({ options: { write: { type: 'boolean' } }, allowPositionals: true });
const [name, protocol = 'core'] = positionals;
if (!name) throw new Error('usage: npx tsx test/stories/tell.ts <story> [protocol] [--write]');

const performance = await perform(readStory(name), protocol, { record: true });
for (const line of performance.errorLog) console.error(`! ${line}`);
for (const [file, text] of Object.entries(filesOf(performance))) {
  const path = `${STORIES}${name}/${file}`;
  const before = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  const news = before === undefined ? 'is new' : before === text ? 'is as it was' : 'is different';
  console.error(`# ${name}/${file} ${news}${values.write && before !== text ? ' and is now written' : ''}`);
  process.stdout.write(text);
  if (values.write) writeFileSync(path, text);
}

/** Another protocol's rendition brings its frames; log and receipts are the core's to tell. */
function filesOf({ log, receipts, frames }: Performance): Record<string, string> {
  if (protocol !== 'core') return { [`${protocol}.jsonl`]: lines(frames) };
  return {
    'core.jsonl': lines(log.map(inReadingOrder)),
    ...Object.fromEntries(Object.entries(receipts).map(([file, receipt]) => [file, pretty(receipt)])),
  };
}

/** What happened and what it says come first; the rest of the envelope after. */
function inReadingOrder(event: CoreEvent): JsonObject {
  const { event: what, actor, created_at, payload, id, ...rest } = event as unknown as JsonObject;
  return {
    event: what,
    ...(actor != null && { actor }),
    created_at,
    payload: plainFirst(payload),
    id,
    ...rest,
  } as JsonObject;
}

/** A line is read from its beginning: words and numbers stand before the documents they are about. */
function plainFirst(payload: Json | undefined): JsonObject {
  const members = Object.entries(payload as JsonObject);
  const plain = ([, value]: [string, unknown]) => typeof value !== 'object' || value === null;
  return Object.fromEntries([...members.filter(plain), ...members.filter((member) => !plain(member))]);
}

function lines(values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

function pretty(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
