/** A whole archive: whatever is edited, left out, repeated, moved, joined or made anew is found and named. */
import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { storyInput } from '../../../../fixtures/receipts/story.ts';
import { buildReceipt } from '../../../../src/receipt/build/build.ts';
import { createEvidence } from '../../../../src/receipt/build/evidence.ts';
import { canonicalJson } from '../../../../src/receipt/seal/canonical-json.ts';
import { sealReceipt } from '../../../../src/receipt/seal/seal.ts';
import type { TreeHead } from '../../../../src/receipt/seal/tree-head.ts';
import { type ChainOptions, verifyChain } from '../../../../src/receipt/verify/chain.ts';
import { edited, receiptIssuer, rehashed } from '../../../support/receipts/issued.ts';

const { keyring, outsider, gateway } = await receiptIssuer();

describe('an archive', () => {
  let archive: string[];
  let treeHead: TreeHead;
  const check = (lines: readonly unknown[], more: Partial<ChainOptions> = {}) =>
    verifyChain(lines, { keys: keyring.jwks(), treeHead, ...more });
  const noHead = { treeHead: undefined } as unknown as Partial<ChainOptions>;

  beforeAll(() => {
    const runtime = gateway();
    // Two workspaces in turns; the fourth record of `a` is a replay's, which does not say its place.
    const replay = { source: 'tollbridge', source_task_id: 'task_a_0', mode: 'exact' } as const;
    const receipts = ['a', 'b', 'a', 'a', 'b', 'a', 'a', 'b'].map(
      (ws, n) => runtime.issue(ws, n === 5 ? { replay } : {}).receipt,
    );
    archive = receipts.map(canonicalJson);
    treeHead = runtime.treeHead();
  });

  test('whole, it verifies, and its end is known only with a tree head', async () => {
    expect(await check(archive)).toMatchObject({
      valid: true,
      records: 8,
      end: 'complete',
      chains: [
        { id: 'a', length: 5 },
        { id: 'b', length: 3 },
      ],
    });
    expect(await check(archive, noHead)).toMatchObject({ valid: true, records: 8, end: 'unknown' });
    expect(await check([...archive.map((line) => JSON.parse(line))])).toMatchObject({ valid: true, end: 'complete' });
    expect(await check([...archive.map((line) => `${line}\r`), '', ' '])).toMatchObject({
      valid: true,
      end: 'complete',
    });
  });

  test('every record: an edit is named', async () => {
    for (let n = 0; n < archive.length; n += 1) {
      const lines = archive.with(n, archive[n]!.replace('"total":0', '"total":1'));
      const { receipt_id } = JSON.parse(archive[n]!);
      expect(await check(lines)).toMatchObject({
        valid: false,
        records: n,
        firstBad: {
          line: n + 1,
          receipt_id,
          code: 'edited',
          message: `line ${n + 1}, receipt ${receipt_id}: its content does not match its hash`,
        },
      });
    }
  });

  test('every record: an edit with a new hash is named', async () => {
    for (let n = 0; n < archive.length; n += 1) {
      const forged = rehashed(edited(JSON.parse(archive[n]!), (r) => (r.cost.total = 1)));
      expect(await check(archive.with(n, JSON.stringify(forged)))).toMatchObject({
        valid: false,
        firstBad: { line: n + 1, code: 'signature_invalid' },
      });
    }
  });

  test('every record: a deletion is named at the next record of its chain, or as a missing end', async () => {
    const next = [3, 5, 4, 6, 8, 7, undefined, undefined];
    for (let n = 0; n < archive.length; n += 1) {
      const lines = archive.toSpliced(n, 1);
      const expected = next[n];
      const report = await check(lines);
      if (expected === undefined) {
        expect(report).toMatchObject({ valid: false, end: 'missing', firstBad: { line: 8, code: 'truncated' } });
      } else {
        const { receipt_id } = JSON.parse(archive[expected - 1]!);
        expect(report).toMatchObject({ valid: false, firstBad: { line: expected - 1, receipt_id, code: 'deleted' } });
      }
    }
    const gone = await check(archive.toSpliced(2, 2));
    expect(gone.firstBad?.message).toBe(
      'line 4, receipt receipt_a_3: one or more records of its chain before it are missing',
    );
    const two = await check([archive[0]!, archive[6]!], noHead);
    expect(two.firstBad?.message).toBe('line 2, receipt receipt_a_4: 3 records of its chain before it are missing');
    const start = await check(archive.slice(2), noHead);
    expect(start.firstBad).toMatchObject({ line: 1, receipt_id: 'receipt_a_1', code: 'deleted' });
    expect(start.firstBad?.message).toContain('one record of its chain before it is missing');
  });

  test('every record: a repetition is named', async () => {
    for (let n = 0; n < archive.length; n += 1) {
      for (const at of [n + 1, archive.length]) {
        expect(await check(archive.toSpliced(at, 0, archive[n]!))).toMatchObject({
          valid: false,
          firstBad: { line: at + 1, code: 'duplicated', message: expect.stringContaining(`it repeats line ${n + 1}`) },
        });
      }
    }
  });

  test('records of one chain in another order are named', async () => {
    const swapped = (i: number, j: number) => archive.with(i, archive[j]!).with(j, archive[i]!);
    expect((await check(swapped(0, 2))).firstBad).toMatchObject({
      line: 1,
      receipt_id: 'receipt_a_1',
      code: 'reordered',
    });
    expect((await check(swapped(2, 3))).firstBad).toMatchObject({
      line: 3,
      receipt_id: 'receipt_a_2',
      code: 'reordered',
    });
    expect((await check(swapped(3, 6))).firstBad).toMatchObject({
      line: 4,
      receipt_id: 'receipt_a_4',
      code: 'reordered',
    });
    expect((await check([...archive].reverse())).firstBad).toMatchObject({ line: 1, code: 'reordered' });
  });

  test('records of two chains in another order are each sound, but not the tree', async () => {
    const swapped = archive.with(0, archive[1]!).with(1, archive[0]!);
    expect(await check(swapped)).toMatchObject({ valid: false, firstBad: { line: 0, code: 'tree_mismatch' } });
    expect(await check(swapped, noHead)).toMatchObject({ valid: true });
  });

  test('a missing tail is seen against the tree head and unknown without it', async () => {
    for (let kept = 0; kept < archive.length; kept += 1) {
      expect(await check(archive.slice(0, kept))).toMatchObject({
        valid: false,
        end: 'missing',
        records: kept,
        firstBad: { line: kept + 1, code: 'truncated', message: expect.stringContaining('counts 8') },
      });
      expect(await check(archive.slice(0, kept), noHead)).toMatchObject({ valid: true, end: 'unknown' });
    }
    const cut = archive.with(7, archive[7]!.slice(0, 100));
    expect(await check(cut)).toMatchObject({ valid: false, firstBad: { line: 8, code: 'not_a_receipt' } });
  });

  test('a whole chain left out is a missing part too', async () => {
    const onlyA = archive.filter((line) => line.includes('"workspace_ref":"a"'));
    expect(await check(onlyA)).toMatchObject({ valid: false, firstBad: { code: 'truncated' } });
    expect(await check(onlyA, { ...noHead, chain: 'a' })).toMatchObject({ valid: true, records: 5 });
  });

  test('records after the tree head are checked, but their end is unknown', async () => {
    const runtime = gateway();
    const first = runtime.issue('a').receipt;
    const early = runtime.treeHead();
    const second = runtime.issue('a').receipt;
    expect(await check([first, second], { treeHead: early })).toMatchObject({
      valid: true,
      records: 2,
      end: 'unknown',
    });
  });

  test('a swapped key is named at the first record it should have signed', async () => {
    const swapped = { keys: [{ ...outsider.jwks().keys[0]!, kid: keyring.signer().keyId }] };
    expect(await check(archive, { ...noHead, keys: swapped })).toMatchObject({
      valid: false,
      firstBad: { line: 1, receipt_id: 'receipt_a_0', code: 'key_swapped' },
    });
    expect(await check(archive, { keys: swapped })).toMatchObject({ firstBad: { line: 0, code: 'tree_head_invalid' } });
    expect(await check(archive, { ...noHead, keys: outsider.jwks() })).toMatchObject({
      firstBad: { line: 1, code: 'key_unknown' },
    });
  });

  test('an archive made anew under another key is found out by the trusted key', async () => {
    const runtime = gateway(outsider);
    const lines = ['a', 'a'].map((ws) => canonicalJson(runtime.issue(ws).receipt));
    const both = { keys: [...keyring.jwks().keys, ...outsider.jwks().keys] };
    expect(await check(lines, { ...noHead, keys: both })).toMatchObject({ valid: true });
    expect(await check(lines, { ...noHead, keys: both, trustAnchor: keyring.signer().keyId })).toMatchObject({
      valid: false,
      firstBad: { line: 1, code: 'key_untrusted' },
    });
  });

  test('two chains joined, and records of one in another, are splices', async () => {
    const spliced = async (lines: string[], more: Partial<ChainOptions> = {}) =>
      (await check(lines, { ...noHead, ...more })).firstBad;
    const other = gateway();
    const foreign = Array.from({ length: 6 }, (_, n) =>
      canonicalJson(other.issue('a', { receipt_id: `foreign_${n}`, metadata: { other: true } }).receipt),
    );
    expect(await spliced([...archive, ...foreign])).toMatchObject({
      line: 9,
      receipt_id: 'foreign_0',
      code: 'spliced',
    });
    // `a` has five records here: the other chain's sixth has the right number and the wrong past.
    expect(await spliced([...archive, foreign[5]!])).toMatchObject({
      line: 9,
      receipt_id: 'foreign_5',
      code: 'spliced',
    });
    expect(await spliced(archive.toSpliced(3, 0, foreign[2]!))).toMatchObject({
      line: 4,
      receipt_id: 'foreign_2',
      code: 'spliced',
    });
    expect(await spliced(archive, { chain: 'a' })).toMatchObject({
      line: 2,
      receipt_id: 'receipt_b_0',
      code: 'spliced',
    });
  });

  test('a second branch of the same chain is a splice', async () => {
    const runtime = gateway();
    const root = runtime.issue('a');
    const next = runtime.issue('a');
    const twin = sealReceipt(
      buildReceipt(storyInput(createEvidence(), { receipt_id: 'twin', chain_id: 'a' })),
      { previous: root.hash, index: 1, tree: root.tree },
      keyring.signer(),
    );
    expect((await check([root.receipt, next.receipt, twin.receipt], noHead)).firstBad).toMatchObject({
      line: 3,
      receipt_id: 'twin',
      code: 'spliced',
      message: 'line 3, receipt twin: it follows line 1, which another record already follows',
    });
    const misplaced = sealReceipt(
      buildReceipt(storyInput(createEvidence(), { receipt_id: 'misplaced', chain_id: 'a' })),
      { previous: next.hash, index: 9, tree: next.tree },
      keyring.signer(),
    );
    expect((await check([root.receipt, next.receipt, misplaced.receipt], noHead)).firstBad).toMatchObject({
      code: 'spliced',
    });
    const crossed = sealReceipt(
      buildReceipt(storyInput(createEvidence(), { receipt_id: 'crossed', chain_id: 'z' })),
      { previous: next.hash, index: 2, tree: next.tree },
      keyring.signer(),
    );
    expect((await check([root.receipt, next.receipt, crossed.receipt], noHead)).firstBad).toMatchObject({
      code: 'spliced',
      message: expect.stringContaining('a record of the chain a'),
    });
  });

  test('a line with a repeated key is refused, whatever its hash', async () => {
    const twice = archive[0]!.replace('{', '{"receipt_id":"shown to people",');
    expect(await check(archive.with(0, twice))).toMatchObject({
      valid: false,
      firstBad: { line: 1, code: 'not_a_receipt', message: expect.stringContaining('appears twice') },
    });
  });
});

test('an archive written long ago, across a change of key, still verifies', async () => {
  const read = (name: string) => readFile(new URL(`../../../../fixtures/receipts/${name}`, import.meta.url), 'utf8');
  const lines = (await read('archive.jsonl')).split('\n');
  const keys = JSON.parse(await read('keys.json'));
  const treeHead = JSON.parse(await read('tree-head.json'));
  expect(await verifyChain(lines, { keys, treeHead })).toEqual({
    valid: true,
    records: 7,
    end: 'complete',
    chains: [
      { id: 'ws_shop', length: 5, head: 'sha256:530a6fcb032152fdc488522eda2e154f62dadfe0288040b88aefcb90a5c0c1df' },
      { id: 'ws_blog', length: 2, head: 'sha256:f38669a6a82eaf26f7ab6e308f200022b39c23637645148cfb801979a9bf3dc0' },
    ],
  });
});
