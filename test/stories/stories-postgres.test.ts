/** Every story again with its log in PostgreSQL: the same log and the same receipts, whichever database holds them. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepsLogs } from '../support/gateway/test-store.ts';
import { createDatabase, PASSWORD, type TestDatabase } from '../support/postgres/server.ts';
import { perform, sides } from './perform.ts';
import { readStory, renderedIn, storyNames } from './story.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());
const schemaOf = (path: string) => `story_${createHash('sha256').update(path).digest('hex').slice(0, 12)}`;
keepsLogs((path) => ({ url: database.url, password: PASSWORD, schema: schemaOf(path) }));

const stories = storyNames().map(readStory);
const protocolOf = (name: string) =>
  renderedIn(name).find((protocol) => protocol === 'harn') ?? renderedIn(name).at(-1)!;

test('there are fourteen', () => expect(stories).toHaveLength(14));

test.each(stories)('$name', async (story) => {
  const performed = await perform(story, protocolOf(story.name));
  const { came, reported } = await sides(story, performed);
  expect(came).toEqual(reported);
  expect(performed.errorLog).toEqual([]);
  expect(performed.undecided).toEqual([]);
});
