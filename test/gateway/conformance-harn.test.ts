/** The suite that examines others is itself looked at: what it counts, what it reports, and that it can say no. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { beyond } from '../conformance/harn/beyond.ts';
import { equal, rising, Skip, truth } from '../conformance/harn/harness/expect.ts';
import { type Report, reportOf, runCategories } from '../conformance/harn/harness/report.ts';
import { FIRST } from '../conformance/harn/harness/revision-2026-04-25.ts';
import { category, each } from '../conformance/harn/harness/suite.ts';
import { createTarget } from '../conformance/harn/harness/target.ts';
import { batchRoot, canonical, type Jwk, type Receipt, sha256, trouble } from '../conformance/harn/proof.ts';
import { publicSuite } from '../conformance/harn/public.ts';
import { main, REVISIONS } from '../conformance/harn.ts';
import { openDoor } from '../support/harn/gateway.ts';

const nowhere = createTarget({ base: 'http://127.0.0.1:9', revision: FIRST, timeoutMs: 200 });

describe('counting', () => {
  test('what is skipped is neither passed nor failed, and every result has its place in the report', async () => {
    const some = category('some', {
      async good() {},
      async bad() {
        truth(false, 'it is not so');
      },
      async away() {
        throw new Skip('not here');
      },
    });
    const none = category('none', {
      async away() {
        throw new Skip('not here');
      },
    });
    const reported: string[] = [];
    const done = await runCategories(
      [some, none].map((each_) => ({ category: each_, at: nowhere })),
      (name, { status }) => reported.push(`${name} ${status}`),
    );
    expect(reported).toEqual(['some passed', 'some failed', 'some skipped', 'none skipped']);
    const report = reportOf('http://x', FIRST.version, done, { rest: true });
    expect(report).toMatchObject({
      schema: 'harn-agents-conformance-2026-04-25',
      target: 'http://x',
      protocol_version: 'agents-protocol-2026-04-25',
      capabilities: { rest: true },
      summary: {
        status: 'failed',
        score: 0.5,
        passed: 1,
        failed: 1,
        skipped: 2,
        total: 4,
        categories_passed: 0,
        categories_failed: 1,
        categories_skipped: 1,
      },
      categories: [
        { name: 'some', status: 'failed', passed: 1, failed: 1, skipped: 1 },
        { name: 'none', status: 'skipped', passed: 0, failed: 0, skipped: 1 },
      ],
    });
    expect(report.categories[0]?.tests.map(({ name, status, error }) => [name, status, error])).toEqual([
      ['good', 'passed', undefined],
      ['bad', 'failed', 'it is not so'],
      ['away', 'skipped', 'not here'],
    ]);
    expect(Object.keys(report.percentiles_ms)).toEqual(['avg', 'p50', 'p95', 'p99']);
  });

  test('there are 26 checks of the public suite in its ten categories', () => {
    const ours = publicSuite({ capabilities: {} });
    expect(ours.map(({ name, checks }) => [name, checks.length])).toEqual([
      ['core', 10],
      ['streaming', 2],
      ['lifecycle', 2],
      ['idempotency', 2],
      ['auth-and-scopes', 3],
      ['replay', 2],
      ['receipts', 2],
      ['vaults', 1],
      ['outcomes', 1],
      ['webhooks', 1],
    ]);
  });

  test.each(REVISIONS)('$version has several hundred checks beyond those, some of them its own', (revision) => {
    const more = beyond(revision).flatMap(({ name, checks }) => checks.map((check) => `${name}: ${check.name}`));
    expect(more.length).toBeGreaterThan(500);
    expect(new Set(more).size).toBe(more.length);
    const others = REVISIONS.filter((each_) => each_ !== revision).flatMap(({ own }) => own.map(({ name }) => name));
    expect(revision.own.map(({ name }) => name).filter((name) => others.includes(name))).toEqual([]);
    expect(revision.own.length).toBeGreaterThan(0);
  });

  test('a table has a check for each of its rows', async () => {
    const seen: number[] = [];
    const rows = each(
      [1, 2, 3],
      (n) => `row ${n}`,
      async (n) => {
        seen.push(n);
      },
    );
    for (const run of Object.values(rows)) await run(nowhere);
    expect([Object.keys(rows), seen]).toEqual([
      ['row 1', 'row 2', 'row 3'],
      [1, 2, 3],
    ]);
  });

  test('expectations fail when they should', () => {
    expect(() => equal({ a: 1 }, { a: 2 }, 'a')).toThrow('a: expected {"a":2}, got {"a":1}');
    expect(() => rising(['a', 'b', 'b'], 'ids')).toThrow('"b" comes after "b"');
    expect(() => rising([1, 2, 3], 'ids')).not.toThrow();
  });
});

describe('options', () => {
  test.each([
    [['--bogus']],
    [['--category', 'nothing']],
    [['--revision', 'agents-protocol-1900-01-01']],
    [['--target', 'not a url']],
    [['--timeout', '-1']],
    [['--timeout', 'soon']],
  ])('%j cannot be run', async (args) => {
    const lines: string[] = [];
    expect(await main(args, (line) => lines.push(line))).toBe(2);
    expect(lines).toEqual([]);
  });

  test('categories can be listed, and one can be run against any address', async () => {
    const lines: string[] = [];
    expect(await main(['--list'], (line) => lines.push(line))).toBe(0);
    expect(lines.join('\n')).toContain('websocket');
    const { url } = await openDoor();
    const received: string[] = [];
    const args = ['--target', `${url}/harn-suite`, '--api-key', 'ana', '--category', 'auth-and-scopes,outcomes'];
    expect(await main(args, (line) => received.push(line))).toBe(0);
    // Once in each revision.
    expect(received.slice(-4)).toEqual([
      'agents-protocol-2026-04-25: 3 passed',
      'agents-protocol-2026-10-11: 3 passed',
      '2 skipped',
      '6 passed, 0 failed',
    ]);
    const one: string[] = [];
    expect(await main([...args, '--revision', FIRST.version], (line) => one.push(line))).toBe(0);
    expect(one.slice(-2)).toEqual(['1 skipped', '3 passed, 0 failed']);
  });

  test('a server that is not there fails every check, and the exit says so', async () => {
    const lines: string[] = [];
    const args = ['--target', 'http://127.0.0.1:9', '--timeout', '200', '--category', 'auth-and-scopes', '--json'];
    expect(await main(args, (line) => lines.push(line))).toBe(1);
    const reports = JSON.parse(lines.join('\n'));
    expect(reports.map(({ protocol_version }: Report) => protocol_version)).toEqual(
      REVISIONS.map(({ version }) => version),
    );
    for (const { summary } of reports) {
      expect([summary.passed, summary.failed, summary.skipped, summary.status]).toEqual([0, 2, 1, 'failed']);
    }
  });
});

describe('the verifier of its own', () => {
  const keys = (
    JSON.parse(readFileSync(new URL('../../fixtures/stories/keys.json', import.meta.url), 'utf8')) as { keys: Jwk[] }
  ).keys;
  const receipt = JSON.parse(
    readFileSync(new URL('../../fixtures/stories/tool-approved/receipt.json', import.meta.url), 'utf8'),
  ) as Receipt;

  test('a good receipt is good', () => {
    expect(trouble(receipt, keys)).toBeUndefined();
  });

  test('another word, another key, no signature are not', () => {
    expect(trouble({ ...receipt, issued_at: '2020-01-01T00:00:00.000Z' }, keys)).toContain('the hash is');
    expect(trouble(receipt, [])).toContain('is not published');
    expect(trouble({ ...receipt, signatures: [] }, keys)).toBe('it is not signed');
    const [key] = keys;
    const other = { ...key!, x: Buffer.alloc(32, 7).toString('base64url') };
    expect(trouble(receipt, [other])).toContain('the key under');
  });

  test('canonical form and roots come out as published', () => {
    expect(canonical({ b: [1.0, -0, 'é', null], a: { z: 1e21, y: 'x' } })).toBe(
      '{"a":{"y":"x","z":1e+21},"b":[1,0,"é",null]}',
    );
    const leaves = ['a', 'b', 'c'].map((text) => sha256(text));
    expect([1, 2, 3].map((count) => batchRoot(leaves.slice(0, count)))).toEqual([
      'sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb',
      'sha256:f1feb246fb28009817820ecfc57459f6d23e1651df291c69a24d5e6fd4746782',
      'sha256:0aa7b1836001394e169e541c8874d8055cb696b648f50850c07c950bca0499cf',
    ]);
  });
});
