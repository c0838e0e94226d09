/** Heads kept elsewhere: a log that was rolled back, or exchanged for another, does not fit them, and the head that shows it is named. */

import { appendFile, cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openApiKeys } from '../../src/auth/api-keys.ts';
import { verify } from '../../src/cli/commands/proof/verify.ts';
import { witnessCheck, witnessList, witnessRun } from '../../src/cli/commands/proof/witness.ts';
import { systemClock } from '../../src/core/clock.ts';
import type { Actor } from '../../src/model/actions.ts';
import type { EventDraft } from '../../src/model/events.ts';
import { Fault } from '../../src/model/faults.ts';
import { openCoreRuntime } from '../../src/runtime/assemble.ts';
import { startGateway } from '../../src/runtime/gateway.ts';
import { createHttpHost } from '../../src/transport/http/server.ts';
import { openWitnessDoor } from '../../src/witness/door.ts';
import { aDirectory, aLog, typed } from '../support/process/cli.ts';
import { configIn } from '../support/process/config-in.ts';

let dir: string;
let kept: string;
beforeEach(async () => {
  dir = await aDirectory();
  kept = join(await aDirectory(), 'heads.jsonl');
  await aLog(['hello', 'read plan'], { at: dir });
});
afterEach(() => vi.unstubAllEnvs());

async function more(text: string): Promise<void> {
  const runtime = await openCoreRuntime({ dataDir: dir });
  const event: EventDraft = {
    event: 'vendor.tollbridge.note',
    resource: { object: 'gateway', id: 'here' },
    payload: { text },
  };
  await runtime.log.commit({ decide: () => ({ events: [event] }) });
  await runtime.close();
}
const run = (to = kept) => typed(() => witnessRun(to, { data: dir }));
const check = async (from = kept) => {
  const { code, out } = await typed(() => witnessCheck(from, { data: dir, json: true }));
  return { code, ...JSON.parse(out) };
};

/** The log as it was at this moment, to put back later. */
async function snapshot(): Promise<() => Promise<void>> {
  const copy = await aDirectory();
  await cp(dir, copy, { recursive: true });
  return async () => {
    await rm(dir, { recursive: true });
    await cp(copy, dir, { recursive: true });
  };
}

test('a file keeps one head after the other, and the log fits them', async () => {
  expect((await run()).out).toMatch(/^ok {3}.* keeps the head over \d+ events\n$/);
  await run();
  await more('one');
  await run();
  const { out } = await typed(() => witnessList(kept, {}));
  expect(out.trimEnd().split('\n')).toHaveLength(2);
  expect(await check()).toMatchObject({ code: 0, valid: true, events: { heads: 2 } });
});

test('a log that was put back to an earlier copy is found out by a head, which is named, and by nothing else', async () => {
  const putBack = await snapshot();
  await more('one');
  await run();
  const head = JSON.parse(await readFile(kept, 'utf8'));
  await putBack();
  expect((await typed(() => verify('all', { data: dir }))).code).toBe(0);
  const { code, first_bad, end } = await check();
  expect({ code, end, says: first_bad.code }).toEqual({ code: 1, end: 'missing', says: 'rolled_back' });
  expect(first_bad.message).toContain(`${head.at} (${head.root}, kept by ${kept}) counts ${head.size}`);
  // Nor does the witness take a head of what is left.
  expect(await run()).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^BAD .*does not take the head: .*counted/),
  });
});

test('a log that went on otherwise from an earlier copy is found out, however long it has become', async () => {
  const putBack = await snapshot();
  await more('one');
  await run();
  const head = JSON.parse(await readFile(kept, 'utf8'));
  await putBack();
  await more('another');
  expect((await check()).first_bad).toMatchObject({
    code: 'events_mismatch',
    message: expect.stringContaining(head.root),
  });
  await more('and more');
  expect((await check()).first_bad).toMatchObject({
    code: 'events_mismatch',
    message: expect.stringContaining(head.root),
  });
  expect((await run()).out).toMatch(/^BAD .*does not go on from the one of/);
});

test('a head with a made-up signature proves nothing, and a record with nonsense in it is refused', async () => {
  await run();
  const head = JSON.parse(await readFile(kept, 'utf8'));
  await writeFile(kept, `${JSON.stringify({ ...head, size: head.size + 5 })}\n`);
  expect((await check()).first_bad.code).toMatch(/rolled_back|log_head_invalid/);
  await writeFile(kept, 'hello\n');
  expect(await typed(() => witnessCheck(kept, { data: dir }))).toMatchObject({ code: 2 });
  // A line that was cut off by a crash was never acknowledged.
  await writeFile(kept, `${JSON.stringify(head)}\n`);
  await appendFile(kept, '{"tree":"ev');
  expect((await check()).code).toBe(0);
  expect((await typed(() => witnessCheck(join(dir, 'absent'), { data: dir }))).err).toContain('there is no file');
});

describe('another gateway', () => {
  const KEYS: Record<string, readonly string[]> = {
    writer: ['witness:write', 'receipts:read'],
    reader: ['receipts:read'],
    none: [],
  };

  async function gateway(): Promise<string> {
    const other = await aDirectory();
    const runtime = await openCoreRuntime({ dataDir: other });
    onTestFinished(() => runtime.close());
    let count = 0;
    const log = { info() {}, warn() {}, error() {} };
    const http = createHttpHost({ requestId: () => `req_${++count}`, log, graceMs: 0 });
    openWitnessDoor({
      store: runtime.store,
      dir: join(other, 'witness'),
      log,
      http,
      authenticate: async (bearer) => {
        const scopes = bearer === undefined ? undefined : KEYS[bearer];
        if (!scopes) throw new Fault('unauthenticated', 'no such key');
        return { id: `key:${bearer}`, kind: 'service', scopes, door: 'witness' } as unknown as Actor;
      },
    });
    const { url } = await http.listen();
    onTestFinished(() => http.close());
    return `${url}/witness/heads`;
  }

  test('keeps heads that go on from one another, asks for the proof, and refuses a rollback and a fork', async () => {
    const url = await gateway();
    vi.stubEnv('TOLLBRIDGE_WITNESS_TOKEN', 'writer');
    expect((await run(url)).code).toBe(0);
    const putBack = await snapshot();
    await more('one');
    expect((await run(url)).code).toBe(0);
    expect(await check(url)).toMatchObject({ code: 0, events: { heads: 2 } });
    await putBack();
    expect((await run(url)).out).toMatch(/^BAD .*counted/);
    expect((await check(url)).first_bad.code).toBe('rolled_back');
    await more('another');
    expect((await run(url)).out).toMatch(/^BAD .*not the same ones/);
    await more('and more');
    expect((await run(url)).out).toMatch(/^BAD .*does not go on/);
    expect((await check(url)).first_bad.code).toBe('events_mismatch');
  });

  test('takes nothing from callers without a key or without the scope, and nothing that is no head', async () => {
    const url = await gateway();
    const post = async (token: string | undefined, body: string) => {
      const headers = token ? { authorization: `Bearer ${token}` } : undefined;
      return (await fetch(url, { method: 'POST', body, ...(headers && { headers }) })).status;
    };
    expect([await post(undefined, '{}'), await post('none', '{}'), await post('reader', '{}')]).toEqual([
      401, 403, 403,
    ]);
    expect([await post('writer', 'x'), await post('writer', '{"head":{},"keys":{"keys":[]}}')]).toEqual([400, 400]);
    expect(await post('writer', JSON.stringify({ head: 1, keys: { keys: [null] } }))).toBe(400);
    const read = (path: string) => fetch(url.replace('/heads', path), { headers: { authorization: 'Bearer reader' } });
    expect((await read('/log/consistency?from=5')).status).toBe(400);
    expect(await (await read('/log')).json()).toEqual({ events: null, receipts: null });
  });
});

test('a gateway sends its heads by itself: to a file, and to another gateway with a key of that one', async () => {
  const [here, there, file] = [await aDirectory(), await aDirectory(), join(await aDirectory(), 'heads.jsonl')];
  const other = await startGateway(await configIn(there, { data: join(there, 'data'), port: 0 }));
  onTestFinished(() => other.close());
  const scopes = ['witness:write', 'receipts:read'];
  const actor = { id: 'peer', kind: 'service' as const, scopes };
  const { key } = await openApiKeys(join(there, 'data'), systemClock).create({ name: 'peer', actor });
  vi.stubEnv('WITNESS_KEY', key);
  const witness = { file: { file }, peer: { url: `${other.url}/witness/heads`, secret: 'KEY' } };
  const vaults = { env: { provider: 'env', prefix: 'WITNESS_' } };
  await writeFile(join(here, 'tollbridge.yaml'), JSON.stringify({ witness, vaults }));
  const gateway = await startGateway(await configIn(here, { data: join(here, 'data'), port: 0 }));
  const event: EventDraft = {
    event: 'vendor.tollbridge.note',
    resource: { object: 'gateway', id: 'here' },
    payload: {},
  };
  await gateway.core.log.commit({ decide: () => ({ events: [event] }) });
  // The last thing it does.
  await gateway.close();
  const [head] = (await readFile(file, 'utf8')).trimEnd().split('\n');
  const answer = await fetch(`${other.url}/witness/heads`, { headers: { authorization: `Bearer ${key}` } });
  expect((await answer.text()).trimEnd()).toBe(head);
  dir = join(here, 'data');
  expect(await check(file)).toMatchObject({ code: 0, events: { heads: 2 } });
});
