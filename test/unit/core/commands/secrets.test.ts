/**
 * Secrets, planted everywhere one can be said, are found nowhere: not in the file, not in our own log, not in any
 * answer. What a tool needs it still gets, and an approval is still bound to exactly what was asked.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { all, freshDir, openTestGateway, REAL_TIME } from '../../../support/gateway/test-gateway.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { expectClean, hatch, hatched, looks, MARK } from '../../../support/tasks/canaries.ts';
import { openMortal } from '../../../support/tasks/killable-gateway.ts';
import { openPlanted, plant } from '../../../support/tasks/planted.ts';
import { type Script, scripted, toolbox } from '../../../support/tasks/script.ts';

needsFile();

async function filesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

describe('planted secrets', () => {
  test('are in no file, no log line and no answer', { timeout: 120_000 }, async () => {
    const before = hatched;
    const dir = await freshDir();
    const { gateway, logFile, tools } = await openPlanted(dir);
    await plant(gateway);

    // They reached those they were meant for.
    const returns = tools.ran.find(({ tool }) => tool === 'returns')!;
    expect(JSON.stringify(returns.arguments)).toContain(MARK);
    expect(hatched - before).toBeGreaterThan(2000);

    // Every answer anyone can get.
    const { bridge } = gateway.runtime;
    const objects =
      'workspace persona session task message artifact memory vault connector skill quota branch outcome ask receipt';
    let answers = 0;
    for (const object of objects.split(' ')) {
      const { data } = await bridge.list<Row>(ana, { object, limit: 1000 });
      for (const row of data) {
        expectClean(`${object} ${row.id} in a list`, JSON.stringify(row));
        expectClean(`${object} ${row.id}`, JSON.stringify(await bridge.view(ana, object, row.id)));
        answers += 1;
        if (object !== 'artifact') continue;
        const bytes = await bridge.bytes(ana, row.id).catch(() => Buffer.alloc(0));
        expectClean(`the bytes of ${row.id}`, Buffer.from(bytes).toString('latin1'));
      }
    }
    expect(answers).toBeGreaterThan(60);
    const auditor: Actor = { id: 'auditor', kind: 'system', scopes: ['*'] };
    const events = await all(bridge.events(auditor, { stream: { of: 'all' } }));
    expect(events.length).toBeGreaterThan(300);
    for (const event of events) expectClean(`event ${event.event} ${event.id}`, JSON.stringify(event));

    // Every value in the file, then every byte of every file.
    const db = new Database(join(gateway.dir, 'log.db'));
    const tables = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all() as { name: string }[];
    for (const { name } of tables) {
      for (const row of db.prepare(`SELECT * FROM "${name}"`).all() as object[]) {
        for (const [column, value] of Object.entries(row)) {
          const content =
            value instanceof Uint8Array || value instanceof ArrayBuffer
              ? Buffer.from(value as Uint8Array).toString('latin1')
              : String(value);
          expectClean(`${name}.${column}`, content);
        }
      }
    }
    db.close();
    const open = await filesBelow(gateway.dir);
    expect(open.some((file) => file.endsWith('-wal'))).toBe(true);
    for (const file of open) expectClean(file, await readFile(file, 'latin1'));
    await gateway.close();
    for (const file of await filesBelow(dir)) expectClean(file, await readFile(file, 'latin1'));
    const lines = (await readFile(logFile, 'utf8')).trim().split('\n');
    expect(lines.length).toBeGreaterThan(3); // it did log: tools that threw, an engine that fell over
    expect(lines.some((line) => line.includes('[redacted: '))).toBe(true);
  });

  test('leave a mark where they were, in the event and in the receipt', async () => {
    const { gateway } = await openPlanted(await freshDir());
    const { id } = await gateway.submit(await gateway.session(), {
      agent: 'fails',
      input: { password: hatch(), note: looks.bearer() },
    });
    await gateway.until(id);
    const events = await gateway.events(id);
    const submitted = events.find(({ event }) => event === 'task.submitted')!;
    expect(submitted.metadata.redactions).toEqual(
      expect.arrayContaining([{ field: '/payload/task/input/password', reason: 'sensitive key' }]),
    );
    const input = (submitted.payload.task as { input: JsonObject }).input;
    expect(input).toEqual({ password: '[redacted: password]', note: 'Bearer [redacted: bearer token]' });
    const receipt = await gateway.receipt(id);
    expect(receipt.redactions).toEqual(
      expect.arrayContaining([
        { field: `/events/${submitted.id}/payload/task/input/password`, reason: 'sensitive key' },
      ]),
    );
    expect(receipt.lifecycle.failure).toMatchObject({ code: 'x', message: expect.stringContaining('[redacted: ') });
    expect(receipt.replay_input.determinism).toBe('best_effort');
    const verdict = await gateway.send('receipt.verify', { receipt_id: receipt.receipt_id });
    expect(verdict.details).toMatchObject({ valid: true });
  });
});

describe('an approval of something with a secret in it', () => {
  const rules = '[{ id: ordinary, then: allow }, { id: people, when: { tool: ask* }, then: ask }]';

  test('shows people what they may see, runs with the real thing, and counts for nothing else', async () => {
    const passwords = ['open sesame 1', 'open sesame 2'];
    let at = 0;
    const script: Script = async ({ sink }) => {
      const args = { user: 'ana', password: passwords[at]! };
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c', arguments: args });
    };
    const tools = toolbox('box', { ask: undefined });
    const agents = () => [scripted('one', script, { resume: true })];
    const first = await openMortal({ rules, agents: agents(), tools: [tools] });
    const { id } = await first.submit(await first.session());
    const ask = await first.ask(id);
    expect(ask.action.arguments).toEqual({ user: 'ana', password: '[redacted: password]' });
    expect(ask.digest).toMatch(/^hmac-sha256:[0-9a-f]{64}$/);
    // Approved, and then the process dies before it acts.
    const struck = first.doom({ commit: 1, when: 'after' });
    void first.answer(ask.id, { approved: true });
    await struck;
    await first.die();

    // Another password looks the same in the log and is not what was approved.
    at = 1;
    const second = await openMortal({ dir: first.dir, rules, agents: agents(), tools: [tools] });
    await eventually(async () => (await second.openAsks()).length === 1);
    const [again] = await second.openAsks();
    expect(again!.id).not.toBe(ask.id);
    expect(again!.digest).not.toBe(ask.digest);
    expect(again!.action.arguments).toEqual({ user: 'ana', password: '[redacted: password]' });
    expect(tools.ran).toEqual([]);
    await second.die();

    // The same one is.
    at = 0;
    const third = await openTestGateway({ ...REAL_TIME, dir: first.dir, rules, agents: agents(), tools: [tools] });
    await third.until(id);
    expect(tools.ran.map(({ arguments: args }) => args)).toEqual([{ user: 'ana', password: 'open sesame 1' }]);
  });
});
