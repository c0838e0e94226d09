import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storyEvidence, storyInput } from '../fixtures/receipts/story.ts';
import type { Receipt } from '../src/model/receipt.ts';
import type { SealedReceipt } from '../src/ports.ts';
import { batchRoot } from '../src/receipt/batch-root.ts';
import { buildReceipt, type ReceiptInput } from '../src/receipt/build.ts';
import { canonicalJson, hashOf } from '../src/receipt/canonical-json.ts';
import { createEvidence } from '../src/receipt/evidence.ts';
import { type Keyring, openKeyring } from '../src/receipt/keys.ts';
import { EMPTY_TREE, type Tree } from '../src/receipt/merkle.ts';
import type { Jwks } from '../src/receipt/public-keys.ts';
import { receiptHash } from '../src/receipt/receipt-hash.ts';
import { sealReceipt } from '../src/receipt/seal.ts';
import { signTreeHead, type TreeHead, verifyTreeHead } from '../src/receipt/tree-head.ts';
import { verifyReceipt } from '../src/receipt/verify.ts';
import { type ChainOptions, verifyChain } from '../src/receipt/verify-chain.ts';

let base: string;
let keyring: Keyring;
let stranger: Keyring;
let now = '2026-11-16T09:30:00.000Z';
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'verify-'));
  keyring = await openKeyring({ dir: join(base, 'ours'), now: () => now });
  stranger = await openKeyring({ dir: join(base, 'theirs'), now: () => now });
});
afterAll(() => rm(base, { recursive: true, force: true }));

/** A gateway as far as receipts go: chains, one tree, one key. */
function gateway(by: Keyring = keyring) {
  const chains = new Map<string, { previous: string | null; index: number }>();
  let tree: Tree = EMPTY_TREE;
  return {
    issue(workspace: string, more: Partial<ReceiptInput> = {}): SealedReceipt {
      const head = chains.get(workspace) ?? { previous: null, index: 0 };
      const id = `${workspace}_${head.index}`;
      const task = {
        id: `task_${id}`,
        session_id: 's',
        workspace_id: workspace,
        created_at: '2026-11-16T09:00:00.000Z',
      };
      const input = storyInput(createEvidence(), { receipt_id: `receipt_${id}`, task, ...more });
      const sealed = sealReceipt(buildReceipt(input), { ...head, tree }, by.signer());
      chains.set(workspace, { previous: sealed.hash, index: head.index + 1 });
      tree = sealed.tree;
      return sealed;
    },
    treeHead: (): TreeHead => signTreeHead(tree, now, by.signer()),
  };
}
const issued = (more: Partial<ReceiptInput> = {}): Receipt => gateway().issue('ws', more).receipt;
const edited = (receipt: Receipt, change: (receipt: Receipt) => void): Receipt => {
  const copy = structuredClone(receipt);
  change(copy);
  return copy;
};
/** As a forger would: the hash fits again, the signature cannot. */
const rehashed = (receipt: Receipt): Receipt => edited(receipt, (r) => (r.chain.receipt_hash = receiptHash(receipt)));

describe('one receipt', () => {
  test('sealed, it verifies', () => {
    const evidence = storyEvidence();
    const receipt = gateway().issue('ws', { evidence }).receipt;
    const keys = keyring.jwks();
    expect(verifyReceipt(receipt, { keys })).toEqual({
      valid: true,
      details: {
        schema: 'ok',
        hash: { expected: receipt.chain.receipt_hash, actual: receipt.chain.receipt_hash },
        chain: 'first',
        merkle: 'absent',
        signatures: [{ key_id: keyring.signer().keyId, status: 'ok' }],
      },
    });
    expect(verifyReceipt(JSON.stringify(receipt, null, 2), { keys }).valid).toBe(true);
  });

  test('every single member is covered', () => {
    const receipt = gateway().issue('ws', { evidence: storyEvidence() }).receipt;
    const paths = leaves(receipt).filter((path) => path[0] !== 'signatures');
    expect(paths.length).toBeGreaterThan(120);
    for (const path of paths) {
      const changed = edited(receipt, (copy) => change(copy, path));
      expect(verifyReceipt(changed, { keys: keyring.jwks() }).valid, path.join('/')).toBe(false);
    }
  });

  test('an edit is a wrong hash; an edit with a new hash is a wrong signature', () => {
    const keys = keyring.jwks();
    const changed = edited(issued(), (r) => (r.cost.total = 5));
    expect(verifyReceipt(changed, { keys })).toMatchObject({
      valid: false,
      reason: 'hash_mismatch',
      details: { hash: { expected: changed.chain.receipt_hash, actual: receiptHash(changed) } },
    });
    expect(verifyReceipt(rehashed(changed), { keys })).toMatchObject({ valid: false, reason: 'signature_invalid' });
  });

  test('a shape that is wrong comes first', () => {
    const keys = keyring.jwks();
    expect(verifyReceipt({}, { keys })).toMatchObject({ valid: false, reason: 'schema_invalid' });
    expect(verifyReceipt('not json', { keys }).details.schema).toBe('this is not JSON');
    expect(verifyReceipt({ ...issued(), extra: 1 }, { keys }).details.schema).toMatch(/has no member "extra"/);
    const twice = JSON.stringify(issued()).replace('{', '{"schema":"receipt-2026-04-25",');
    expect(verifyReceipt(twice, { keys }).details.schema).toMatch(/"schema" appears twice/);
    const odd = { ...issued(), metadata: { half: '\ud800' } };
    expect(verifyReceipt(odd, { keys })).toMatchObject({ valid: false, reason: 'schema_invalid' });
  });

  test('the chain: first, followed, unknown, broken', () => {
    const keys = keyring.jwks();
    const house = gateway();
    const [one, two] = [house.issue('ws').receipt, house.issue('ws').receipt];
    const chain = (receipt: Receipt, previous?: unknown) =>
      verifyReceipt(receipt, { keys, ...(previous !== undefined && { previous }) });
    expect(chain(one).details.chain).toBe('first');
    expect(chain(one, null).details.chain).toBe('first');
    expect(chain(two).details.chain).toBe('not_available');
    expect(chain(two).valid).toBe(true);
    expect(chain(two, one).details.chain).toBe('ok');
    expect(chain(two, one.chain.receipt_hash).details.chain).toBe('ok');
    for (const wrong of [null, two, edited(one, (r) => (r.cost.total = 5)), `sha256:${'0'.repeat(64)}`]) {
      expect(chain(two, wrong)).toMatchObject({
        valid: false,
        reason: 'chain_mismatch',
        details: { chain: 'mismatch' },
      });
    }
    expect(chain(one, two)).toMatchObject({ valid: false, reason: 'chain_mismatch' });
  });

  test('a root inside: unknown batch, own hash, right batch, wrong batch', () => {
    const signer = keyring.signer();
    const embed = (root: string) => {
      const { signatures: _, ...receipt } = edited(issued(), (r) => (r.chain.merkle_root = root));
      const hash = receiptHash(receipt as Receipt);
      return {
        ...receipt,
        chain: { ...receipt.chain, receipt_hash: hash },
        signatures: [signer.sign(hash)],
      } as Receipt;
    };
    const keys = keyring.jwks();
    const plain = issued();
    const leaf = plain.chain.receipt_hash;
    const leaves = [leaf, hashOf('another')];
    const receipt = embed(batchRoot(leaves));
    expect(verifyReceipt(receipt, { keys })).toMatchObject({ valid: true, details: { merkle: 'not_available' } });
    const right = { leaves, root: batchRoot(leaves) };
    expect(verifyReceipt(receipt, { keys, batch: right })).toMatchObject({ valid: true, details: { merkle: 'ok' } });
    for (const batch of [
      { leaves: [leaf], root: right.root },
      { leaves: [hashOf('another')], root: right.root },
      { leaves, root: leaf },
    ]) {
      expect(verifyReceipt(receipt, { keys, batch })).toMatchObject({ valid: false, reason: 'merkle_mismatch' });
    }
    const own = edited(plain, (r) => (r.chain.merkle_root = r.chain.receipt_hash));
    expect(verifyReceipt(own, { keys }).details.merkle).toBe('degenerate');
  });
});

describe('signatures and keys', () => {
  test('none at all proves nothing about the issuer', () => {
    const { signatures: _, ...unsigned } = issued();
    const keys = keyring.jwks();
    expect(verifyReceipt(unsigned, { keys })).toMatchObject({
      valid: false,
      reason: 'signature_absent',
      details: { signatures: 'absent' },
    });
    expect(verifyReceipt(unsigned, { keys, allowUnsigned: true }).valid).toBe(true);
  });

  test('an unknown key, an unknown algorithm, a garbled signature', () => {
    const receipt = issued();
    const keys = keyring.jwks();
    expect(verifyReceipt(receipt, { keys: stranger.jwks() })).toMatchObject({ valid: false, reason: 'key_unknown' });
    const other = edited(receipt, (r) => (r.signatures![0]!.algorithm = 'rsa'));
    expect(verifyReceipt(other, { keys })).toMatchObject({ valid: false, reason: 'signature_unsupported' });
    for (const text of ['base64:AAAA', 'none', `base64:${'A'.repeat(86)}==`]) {
      const garbled = edited(receipt, (r) => (r.signatures![0]!.signature = text));
      expect(verifyReceipt(garbled, { keys })).toMatchObject({ valid: false, reason: 'signature_invalid' });
    }
    const bare = edited(
      receipt,
      (r) => (r.signatures![0]!.signature = r.signatures![0]!.signature.replace('base64:', '')),
    );
    expect(verifyReceipt(bare, { keys }).valid).toBe(true);
  });

  test('a key put under the name of another is found out', () => {
    const theirs = stranger.jwks().keys[0]!;
    const keys: Jwks = { keys: [{ ...theirs, kid: keyring.signer().keyId }] };
    const forged = edited(issued(), (r) => {
      r.cost.total = 5;
      r.chain.receipt_hash = receiptHash(r);
      r.signatures = [{ ...stranger.signer().sign(r.chain.receipt_hash), key_id: keyring.signer().keyId }];
    });
    expect(verifyReceipt(forged, { keys })).toMatchObject({ valid: false, reason: 'key_swapped' });
    // Nor does the real key beside it make the name good again, in either order.
    expect(verifyReceipt(issued(), { keys: { keys: [...keys.keys, ...keyring.jwks().keys] } }).reason).toBe(
      'key_swapped',
    );
    expect(verifyReceipt(issued(), { keys: { keys: [...keyring.jwks().keys, ...keys.keys] } }).reason).toBe(
      'key_swapped',
    );
  });

  test('a witness we do not know takes nothing away; a false one does', () => {
    const witnessed = edited(issued(), (r) => r.signatures!.push(stranger.signer().sign(r.chain.receipt_hash)));
    const keys = keyring.jwks();
    expect(verifyReceipt(witnessed, { keys })).toMatchObject({
      valid: true,
      details: { signatures: [{ status: 'ok' }, { status: 'key_unknown' }] },
    });
    const both = { keys: [...keys.keys, ...stranger.jwks().keys] };
    expect(verifyReceipt(witnessed, { keys: both }).valid).toBe(true);
    const lying = edited(issued(), (r) => r.signatures!.push(stranger.signer().sign(hashOf('other'))));
    expect(verifyReceipt(lying, { keys: both })).toMatchObject({ valid: false, reason: 'signature_invalid' });
  });

  test('an anchor trusts one key, or a receipt the chain must reach', () => {
    const house = gateway();
    const [one, two, three] = [house.issue('ws').receipt, house.issue('ws').receipt, house.issue('ws').receipt];
    const keys = keyring.jwks();
    const anchored = (trustAnchor: string, more = {}) => verifyReceipt(three, { keys, trustAnchor, ...more });
    expect(anchored(keyring.signer().keyId).valid).toBe(true);
    expect(anchored(stranger.signer().keyId)).toMatchObject({ valid: false, reason: 'key_untrusted' });
    expect(anchored(three.chain.receipt_hash).details.trust_anchor).toBe('reached');
    expect(anchored(two.chain.receipt_hash).valid).toBe(true);
    expect(anchored(one.chain.receipt_hash, { earlier: [one, two] }).valid).toBe(true);
    expect(anchored(one.chain.receipt_hash)).toMatchObject({
      valid: false,
      reason: 'chain_mismatch',
      details: { trust_anchor: 'not_reached' },
    });
    const broken = [one, edited(two, (r) => (r.cost.total = 5))];
    expect(anchored(one.chain.receipt_hash, { earlier: broken }).valid).toBe(false);
  });

  test('a change of key keeps old receipts good, and dates count', async () => {
    now = '2026-11-16T09:30:00.000Z';
    const rotating = await openKeyring({ dir: join(base, 'rotating'), now: () => now });
    const house = gateway(rotating);
    const before = house.issue('ws').receipt;
    now = '2026-11-16T10:30:00.000Z';
    await rotating.rotate();
    const after = house.issue('ws').receipt;
    const keys = rotating.jwks();
    const check = (receipt: Receipt, atTime?: string) => verifyReceipt(receipt, { keys, ...(atTime && { atTime }) });
    expect(check(before).valid).toBe(true);
    expect(check(after).valid).toBe(true);
    expect(before.signatures![0]!.key_id).not.toBe(after.signatures![0]!.key_id);
    expect(check(before, '2026-11-16T09:45:00Z').valid).toBe(true);
    expect(check(before, '2026-11-16T11:00:00Z')).toMatchObject({ valid: false, reason: 'key_expired' });
    expect(check(after, '2026-11-16T09:45:00Z')).toMatchObject({ valid: false, reason: 'key_expired' });
    expect(check(before, 'no time at all')).toMatchObject({ valid: false, reason: 'key_expired' });
    now = '2026-11-16T09:30:00.000Z';
  });

  test('a receipt built before a change of key names the key that signed it', () => {
    const issuer = { id: 'g', kind: 'harness', public_key_id: 'ed25519:old' } as const;
    expect(issued({ issuer }).issuer.public_key_id).toBe(keyring.signer().keyId);
  });
});

describe('an archive', () => {
  let archive: string[];
  let treeHead: TreeHead;
  const check = (lines: readonly unknown[], more: Partial<ChainOptions> = {}) =>
    verifyChain(lines, { keys: keyring.jwks(), treeHead, ...more });
  const noHead = { treeHead: undefined } as unknown as Partial<ChainOptions>;

  beforeAll(() => {
    const house = gateway();
    // Two workspaces in turns; the fourth record of `a` is a replay's, which does not say its place.
    const replay = { source: 'tollbridge', source_task_id: 'task_a_0', mode: 'exact' } as const;
    const receipts = ['a', 'b', 'a', 'a', 'b', 'a', 'a', 'b'].map(
      (ws, n) => house.issue(ws, n === 5 ? { replay } : {}).receipt,
    );
    archive = receipts.map(canonicalJson);
    treeHead = house.treeHead();
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
    const house = gateway();
    const first = house.issue('a').receipt;
    const early = house.treeHead();
    const second = house.issue('a').receipt;
    expect(await check([first, second], { treeHead: early })).toMatchObject({
      valid: true,
      records: 2,
      end: 'unknown',
    });
  });

  test('a swapped key is named at the first record it should have signed', async () => {
    const swapped = { keys: [{ ...stranger.jwks().keys[0]!, kid: keyring.signer().keyId }] };
    expect(await check(archive, { ...noHead, keys: swapped })).toMatchObject({
      valid: false,
      firstBad: { line: 1, receipt_id: 'receipt_a_0', code: 'key_swapped' },
    });
    expect(await check(archive, { keys: swapped })).toMatchObject({ firstBad: { line: 0, code: 'tree_head_invalid' } });
    expect(await check(archive, { ...noHead, keys: stranger.jwks() })).toMatchObject({
      firstBad: { line: 1, code: 'key_unknown' },
    });
  });

  test('an archive made anew under another key is found out by the trusted key', async () => {
    const house = gateway(stranger);
    const lines = ['a', 'a'].map((ws) => canonicalJson(house.issue(ws).receipt));
    const both = { keys: [...keyring.jwks().keys, ...stranger.jwks().keys] };
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
    const house = gateway();
    const root = house.issue('a');
    const next = house.issue('a');
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

describe('tree heads', () => {
  test('a head is bound to its size, root, time and key', () => {
    const house = gateway();
    house.issue('a');
    const head = house.treeHead();
    const keys = keyring.jwks();
    expect(verifyTreeHead(head, keys)).toBe('ok');
    expect(verifyTreeHead({ ...head, size: 2 }, keys)).toBe('invalid');
    expect(verifyTreeHead({ ...head, root: hashOf(1) }, keys)).toBe('invalid');
    expect(verifyTreeHead({ ...head, at: '2026-11-16T09:30:01.000Z' }, keys)).toBe('invalid');
    expect(verifyTreeHead(head, stranger.jwks())).toBe('key_unknown');
    expect(verifyTreeHead(head, keys, stranger.signer().keyId)).toBe('untrusted');
    expect(verifyTreeHead({ ...head, size: NaN }, keys)).toBe('invalid');
    expect(verifyTreeHead({} as TreeHead, keys)).toBe('invalid');
  });
});

test('an archive written long ago, across a change of key, still verifies', async () => {
  const read = (name: string) => readFile(new URL(`../fixtures/receipts/${name}`, import.meta.url), 'utf8');
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

/** Paths of all values that are no objects, keys and indexes alike. */
function leaves(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, member]) => leaves(member, [...path, key]));
}

function change(value: unknown, path: readonly string[]): void {
  const parent = path.slice(0, -1).reduce((at, key) => (at as Record<string, unknown>)[key], value) as Record<
    string,
    unknown
  >;
  const key = path.at(-1)!;
  const before = parent[key];
  if (typeof before === 'number') parent[key] = before + 1;
  else if (typeof before === 'boolean') parent[key] = !before;
  else if (before === null) parent[key] = `sha256:${'0'.repeat(64)}`;
  else parent[key] = `${before}x`;
}
