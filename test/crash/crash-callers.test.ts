/**
 * Commands and a gateway, killed under callers of MCP, AHP and ACP: every call that was answered is on exactly one receipt, or in work
 * that is still open. `npm run crash -- --calls 60` does the same for longer. And the checker is shown to notice what it is for.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Broken } from './broken.ts';
import { type CallersReport, callThrough } from './callers/campaign.ts';
import { CALLERS } from './callers/ledger.ts';
import { callsAreAccountedFor } from './promises/calls.ts';
import { createChance } from './random.ts';

const PROGRAM = resolve(import.meta.dirname, '../../dist/src/main.js');
let root: string;
let report: CallersReport;

beforeAll(async () => {
  if (!existsSync(PROGRAM)) throw new Error('the gateway is not built: npm run build');
  root = await mkdtemp(join(tmpdir(), 'tollbridge-crash-'));
  const reported: string[] = [];
  const chance = createChance('a few calls');
  report = await callThrough({ program: PROGRAM, root, chance, kills: 8, say: (text) => reported.push(text) }).catch(
    (broken) => {
      throw new Error(`${broken}\n${reported.join('\n')}\nThe data is in ${root}`, { cause: broken });
    },
  );
}, 300_000);

afterAll(async () => {
  if (report) await rm(root, { recursive: true, force: true });
});

test('after every kill each answered call is on one receipt, or open; in the end all are sealed', () => {
  expect(report).toMatchObject({ kills: 8, open: 0 });
  expect(report.oneCommit).toBeGreaterThan(0);
  for (const kind of CALLERS)
    expect(report.ledger.calls.filter(({ by, received }) => by === kind && received).length, kind).toBeGreaterThan(0);
});

describe('the checker notices', () => {
  const broken = (look: Partial<CallersReport['look']>, reached = report.reached) => {
    try {
      callsAreAccountedFor({ ...report.look, ...look }, report.ledger, reached);
    } catch (thrown) {
      if (thrown instanceof Broken) return thrown.promise;
      throw thrown;
    }
    return 'nothing';
  };
  const { stringify, parse } = JSON;

  test('nothing, when nothing is wrong', () => expect(broken({})).toBe('nothing'));

  test('a receipt that is missing, and one that is there twice', () => {
    const holding = report.look.receipts.filter(({ receipt }) => receipt.side_effects.tool_calls.length > 0);
    expect(broken({ receipts: report.look.receipts.filter((each) => each !== holding[0]) })).toBe(
      'a call is on one receipt',
    );
    expect(broken({ receipts: [...report.look.receipts, ...holding] })).toBe('a call is on one receipt');
  });

  test('a call that is not on record, and one that is twice', () => {
    const asked = report.look.events.filter(({ event }) => event === 'tool.requested');
    expect(broken({ events: report.look.events.filter(({ event }) => event !== 'tool.requested') })).toBe(
      'an answered call is on record',
    );
    expect(broken({ events: [...report.look.events, ...asked] })).toBe('a call is on record once');
  });

  test('an outcome that claims another end', () => {
    const spoiled = (from: string, to: string) => ({
      receipts: parse(stringify(report.look.receipts).replaceAll(`"outcome":"${from}"`, `"outcome":"${to}"`)),
    });
    expect(broken(spoiled('succeeded', 'canceled'))).toMatch(/^(a receipt says what was told|a call that ran)/);
    expect(broken(spoiled('refused', 'succeeded'))).toBe('a receipt says what was told');
    const reasons = parse(stringify(report.look.receipts).replaceAll('"outcome_reason":', '"other":'));
    if (report.unknown > 0) expect(broken({ receipts: reasons })).toBe('what is unknown says why');
  });

  test('a call that reached its tool unseen', () => {
    const { nonce } = report.ledger.want('mcp over stdio', 'n-unseen.');
    expect(broken({}, new Set([nonce]))).toBe('an answered call is on record');
    report.ledger.calls.pop();
  });

  test('a call with an effect whose decision was not written first', () => {
    const { receipts } = report.look;
    const marked = parse(
      stringify(receipts).replaceAll('"outcome":"succeeded"', '"one_commit":true,"outcome":"succeeded"'),
    );
    expect(broken({ receipts: marked })).toBe('what may have an effect is decided first');
  });
});
