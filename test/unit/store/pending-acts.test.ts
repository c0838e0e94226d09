/** Kept acts are found, listed and dropped by the id of their question, whatever made that id; no other name reaches the directory. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createPendingActs, fileActs } from '../../../src/store/pending-acts.ts';
import { aDirectory } from '../../support/process/cli.ts';

test('ids of questions, of replays too, and nothing that is no id', async () => {
  const dir = join(await aDirectory(), 'pending-acts');
  const acts = createPendingActs({ rows: fileActs(dir), signer: { mac: (text) => `mac of ${text}` } });
  const ids = ['ask_01M7TVN55KJ6VX93ECEEYD503V', 'ask_replay_ca34a449473b28e1ffa300223e_2.q1'];
  for (const id of ids) await acts.keep(id, { arguments: { to: id } } as never);
  for (const id of ids) expect(await acts.read(id)).toEqual({ arguments: { to: id } });
  expect((await acts.list()).map(({ askId }) => askId).toSorted()).toEqual(ids);
  for (const id of ids) acts.drop(id);
  expect(await readdir(dir)).toEqual([]);
  for (const id of ['', '.', '..', '../ask_1', 'ask..q1', '.ask', 'ask/q1', 'ask_1.draft', 'a'.repeat(201)]) {
    expect(() => acts.drop(id), id).toThrow('not an id of a question');
    await expect(acts.read(id)).rejects.toThrow('not an id of a question');
  }
});
