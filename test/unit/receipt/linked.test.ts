/** Receipts of two gateways that name each other: both sides state the link, verify follows it, and a forged one never holds. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { NAMES } from '../../../src/cli/commands/proof/archive.ts';
import { followLinks } from '../../../src/cli/commands/proof/verify-linked.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import { canonicalJson } from '../../../src/receipt/seal/canonical-json.ts';
import { checkLinks, linksOf } from '../../../src/receipt/verify/linked.ts';
import { verifyReceipt } from '../../../src/receipt/verify/verify.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { openTestGateway, says } from '../../support/gateway/test-gateway.ts';
import { type Gateways, openGateways, WORK_PROTOCOLS } from '../../support/gateway/two-gateways.ts';
import { OPEN, real } from '../../support/harn/two-gateways.ts';
import { exported, linksByScript, saidByPython } from '../../support/process/linked-exports.ts';

async function bothReceipts(protocol: (typeof WORK_PROTOCOLS)[number]): Promise<Gateways & { a: Receipt; b: Receipt }> {
  const two = await openGateways(protocol, { far: { rules: OPEN }, near: { rules: OPEN } });
  const id = await two.give('read plan');
  await two.near.until(id);
  const [a] = await two.near.receipts(id);
  const [b] = await two.far.receipts(await two.farTask());
  return { ...two, a: a!, b: b! };
}

describe.each(WORK_PROTOCOLS)('over %s', (protocol) => {
  test('each receipt states the other one, and both are valid', async () => {
    const { a, b, near, far } = await bothReceipts(protocol);
    expect(linksOf(a)).toEqual([
      {
        direction: 'callee',
        protocol,
        task_id: protocol === 'runs' ? `run_${b.subject.id.slice(5)}` : b.subject.id,
        receipt_id: b.receipt_id,
        receipt_hash: b.chain.receipt_hash,
        issuer: 'tollbridge',
        key_id: b.issuer.public_key_id,
        checked: protocol === 'harn' ? 'valid' : 'claimed',
        event_id: expect.any(String),
        event_hash: expect.stringMatching(/^sha256:/),
      },
    ]);
    const [toB] = linksOf(a);
    expect(linksOf(b)).toEqual([
      {
        direction: 'caller',
        protocol,
        task_id: a.subject.id,
        issuer: 'tollbridge',
        key_id: a.issuer.public_key_id,
        checked: 'claimed',
        event_id: toB?.event_id,
        event_hash: toB?.event_hash,
      },
    ]);
    expect(verifyReceipt(a, { keys: near.runtime.keyring.jwks() }).valid).toBe(true);
    expect(verifyReceipt(b, { keys: far.runtime.keyring.jwks() }).valid).toBe(true);
    expect(checkLinks([a], { receipts: [{ receipt: b }] })).toMatchObject([{ state: 'linked', direction: 'callee' }]);
    expect(checkLinks([b], { receipts: [{ receipt: a }] })).toMatchObject([{ state: 'linked', direction: 'caller' }]);
  });

  test('verify follows the link through both exports, in both directions', async () => {
    const { near, far } = await bothReceipts(protocol);
    const [a, b] = [await exported(near.runtime), await exported(far.runtime)];
    expect(await followLinks(a, b)).toMatchObject({ linked: 1, mismatch: 0, not_available: 0 });
    expect(await followLinks(b, a)).toMatchObject({ linked: 1, mismatch: 0, not_available: 0 });
    // Without anything of ours, in JavaScript and, where there is one, in Python.
    expect(await linksByScript(a, b)).toBe(1);
    const python = saidByPython(a, b);
    if (python !== undefined) expect(python).toMatch(/^ok .*1 links$/m);
    await writeFile(join(b, NAMES.receipts), '');
    expect(await followLinks(a, b)).toMatchObject({ linked: 0, mismatch: 0, not_available: 1 });
  });
});

test('what is announced once is announced again in the same words, also when the key was changed in between', async () => {
  const said: unknown[] = [];
  const t = await openTestGateway({
    agents: [
      scriptedAgent(async (_sink, work) => {
        said.push(await work.reference?.('harn'));
        await t.runtime.keyring.rotate();
        said.push(await work.reference?.('harn'));
        return undefined;
      }),
    ],
    rules: OPEN,
    clock: real as never,
  });
  const before = t.runtime.keyring.signer().keyId;
  const { id } = await (await t.room()).task({ input: says('go') });
  await t.until(id);
  expect(said[0]).toMatchObject({ task_id: id, key_id: before });
  expect(said[1]).toEqual(said[0]);
});

describe('a link that does not hold', () => {
  const broken = (change: (b: Receipt) => Receipt, trouble?: string) => async () => {
    const { a, b } = await bothReceipts('harn');
    return checkLinks([a], { receipts: [{ receipt: change(b), trouble }] });
  };
  const withLinks = (receipt: Receipt, links: object[]): Receipt => ({
    ...receipt,
    metadata: { ...receipt.metadata, linked_receipts: links as never },
  });

  test.each([
    ['another content', (b: Receipt) => ({ ...b, issued_at: '2020-01-01T00:00:00Z' }), 'has another hash'],
    ['no word of us', (b: Receipt) => withLinks(b, []), 'does not name'],
    [
      'the word of another task',
      (b: Receipt) => withLinks(b, [{ direction: 'caller', task_id: 'task_x' }]),
      'does not name',
    ],
  ])('the other receipt has %s', async (_, change, words) => {
    const [check] = await broken(change)();
    expect(check).toMatchObject({ state: 'mismatch', reason: expect.stringContaining(words) });
  });

  test('the other receipt is not valid', async () => {
    const [check] = await broken((b) => b, 'signature_absent')();
    expect(check).toMatchObject({ state: 'mismatch', reason: expect.stringContaining('signature_absent') });
  });

  test('work given in the name of a task that gave none: claimed, and found out', async () => {
    const { a, b } = await bothReceipts('harn');
    const forged = withLinks(b, [{ ...linksOf(b)[0], task_id: a.subject.id }]);
    const [check] = checkLinks([forged], { receipts: [{ receipt: withLinks(a, []) }] });
    expect(check).toMatchObject({ state: 'mismatch', reason: expect.stringContaining('does not name') });
  });

  test('an event that was changed since it was announced', async () => {
    const { near, far } = await bothReceipts('harn');
    const [a, b] = [await exported(near.runtime), await exported(far.runtime)];
    const events = [];
    for await (const event of near.runtime.store.read({ stream: { of: 'all' } }))
      events.push({ ...event, actor: 'mallory' });
    await writeFile(join(a, NAMES.events), events.map((event) => `${canonicalJson(event as never)}\n`).join(''));
    const { checks } = await followLinks(b, a);
    expect(checks).toMatchObject([{ state: 'mismatch', reason: expect.stringContaining('has another hash') }]);
  });
});
