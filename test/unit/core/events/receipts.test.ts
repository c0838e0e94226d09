/** Receipts as the core issues them: one for every end, in one unbroken chain per workspace, checkable by anyone. */

import { join } from 'node:path';
import Database from 'libsql';
import { describe, expect, test } from 'vitest';
import { Receipt } from '../../../../src/model/receipt.ts';
import type { Task } from '../../../../src/model/resources.ts';
import { check } from '../../../../src/model/validate.ts';
import type { Store, StoredReceipt } from '../../../../src/ports/index.ts';
import { rootOf } from '../../../../src/receipt/merkle/merkle.ts';
import { inclusionProof, verifyInclusion } from '../../../../src/receipt/merkle/proofs.ts';
import { receiptHash } from '../../../../src/receipt/seal/receipt-hash.ts';
import { signTreeHead } from '../../../../src/receipt/seal/tree-head.ts';
import { verifyChain } from '../../../../src/receipt/verify/chain.ts';
import { freshDir, openTestGateway, REAL_TIME, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { MIXED } from '../../../support/policy/rules.ts';
import { patient, scripted, text, toolbox } from '../../../support/tasks/script.ts';

const agents = () => [
  scripted('quick', async ({ sink }) => {
    await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c', arguments: { n: 1 } });
    await sink.emit(text('done'));
  }),
  scripted('fails', async () => {
    throw new Error('no');
  }),
  scripted('waits', patient),
];
const box = () => toolbox('box', { write: undefined, no: undefined, ask: undefined });
const open = (dir?: string) =>
  openTestGateway({
    ...REAL_TIME,
    ...(dir && { dir }),
    rules: MIXED,
    agents: agents(),
    tools: [box()],
    settings: { graceMs: 500 },
  });

async function everyReceipt(store: Store): Promise<readonly StoredReceipt[]> {
  const found: StoredReceipt[] = [];
  for (;;) {
    const last = found.at(-1);
    const page = await store.receipts({ limit: 100, ...(last && { after: last.position }) });
    if (page.length === 0) return found;
    found.push(...page);
  }
}

describe('one receipt', () => {
  test('has the shape of the format, the hash of its content, and says what happened', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      rules: MIXED,
      tools: [box()],
      agents: [
        scripted('one', async ({ sink }) => {
          await sink.emit({
            event: 'vendor.tollbridge.usage',
            payload: { provider: 'acme', model: 'large', usd_micros: 1_250_000, input_tokens: 10, output_tokens: 5 },
          });
          await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'w', arguments: { n: 1 } });
          await sink.act({ kind: 'tool', tool: 'no', tool_call_id: 'n' });
          await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'a' });
          await sink.artifact({ kind: 'file', mime_type: 'text/plain', bytes: Buffer.from('x') });
          await sink.act({ kind: 'fs.write', tool: 'edit', tool_call_id: 'e' }, async () => ({
            status: 'ok',
            output: null,
            effects: [{ type: 'fs_write', path: '/tmp/a', operation: 'modify' }],
          }));
        }),
      ],
    });
    const workspace_id = await gateway.workspace();
    const session = await gateway.session({ workspace_id });
    const { id } = await gateway.submit(session, { metadata: {} });
    const ask = await gateway.ask(id);
    await gateway.answer(ask.id, { approved: true, reason: 'fine' });
    const task = await gateway.until(id);
    const receipt = await gateway.receipt(id);
    check(Receipt, receipt, 'the receipt');
    expect(receipt.chain).toEqual({ previous_receipt_hash: null, receipt_hash: receiptHash(receipt) });
    expect(receipt).toMatchObject({
      schema: 'receipt-2026-04-25',
      receipt_id: task.receipt_id,
      subject: { object: 'task', id },
      identifiers: { workspace_ref: workspace_id, session_id: session, task_id: id },
      issuer: { id: 'tollbridge', kind: 'harness', public_key_id: gateway.runtime.keyring.signer().keyId },
      lifecycle: {
        created_at: task.created_at,
        started_at: task.started_at,
        completed_at: task.completed_at,
        final_state: 'SUCCEEDED',
        failure: null,
      },
      approvals: [
        {
          approval_id: ask.id,
          actor: 'ana',
          action: 'tool:ask',
          decision: 'approved',
          quorum_proof: { required: 1, satisfied: 1 },
        },
      ],
      trust: { start_tier: 'act_auto', end_tier: 'act_auto', policy_ref: gateway.runtime.policy.version },
      cost: { currency: 'USD', total: 1.25, provider_breakdown: [{ provider: 'acme', model: 'large', amount: 1.25 }] },
      side_effects: {
        fs_writes: [{ path: '/tmp/a', operation: 'modify' }],
        tool_calls: [
          { call_id: 'w', status: 'succeeded', metadata: { evidence: 'held', verdict: 'allow', rule_id: 'ordinary' } },
          { call_id: 'n', status: 'canceled', metadata: { denied: true, verdict: 'block', rule_id: 'never' } },
          { call_id: 'a', status: 'succeeded', metadata: { ask_id: ask.id, verdict: 'escalate' } },
          { call_id: 'e', status: 'succeeded', metadata: { evidence: 'held' } },
        ],
      },
      metadata: {
        chain: { id: workspace_id, scope: 'workspace', index: 0 },
        evidence: { held: 4, asked: 0, observed: 0 },
        side_effect_evidence: { held: 1 },
      },
    });
    expect(receipt.final_artifacts).toHaveLength(1);
    expect((receipt as Receipt).signatures).toHaveLength(1);
  });

  test('of work that never began has times all the same', async () => {
    const gateway = await open();
    const session = await gateway.session();
    const running = await gateway.submit(session, { agent: 'waits' });
    const { id } = await gateway.submit(session, { agent: 'waits' });
    await gateway.send('task.cancel', { task_id: id });
    const receipt = await gateway.receipt(id);
    check(Receipt, receipt, 'the receipt');
    const task = await gateway.task(id);
    expect(receipt.lifecycle).toMatchObject({
      created_at: task.created_at,
      started_at: task.created_at,
      completed_at: task.canceled_at,
      final_state: 'CANCELED',
    });
    await gateway.send('task.cancel', { task_id: running.id });
  });
});

describe('the chain', () => {
  test('has no gap after two hundred ends at once, in several workspaces, in two gateways', {
    timeout: 120_000,
  }, async () => {
    const dir = await freshDir();
    const [one, two] = [await open(dir), await open(dir)];
    const workspaces = [await one.workspace(), await one.workspace(), await two.workspace()];
    const wanted: Promise<Task>[] = [];
    for (let n = 0; n < 200; n += 1) {
      const gateway = n % 2 ? one : two;
      wanted.push(
        (async () => {
          const session = await gateway.session({ workspace_id: workspaces[n % 3]! });
          const agent = n % 10 === 0 ? 'fails' : n % 10 === 1 ? 'waits' : 'quick';
          const task = await gateway.submit(session, { agent });
          // Some are ended from the other gateway.
          if (agent === 'waits') await (n % 4 === 1 ? two : one).send('task.cancel', { task_id: task.id });
          return await gateway.until(task.id);
        })(),
      );
    }
    const tasks = await Promise.all(wanted);
    const stored = await everyReceipt(one.runtime.store);
    expect(stored).toHaveLength(200);
    expect(stored.map(({ position }) => position)).toEqual(Array.from({ length: 200 }, (_, at) => at));
    expect(new Set(stored.map(({ receipt }) => receipt.identifiers.task_id))).toEqual(
      new Set(tasks.map(({ id }) => id)),
    );
    for (const workspace of workspaces) {
      const chain = stored.filter((each) => each.chain === workspace);
      expect(chain.map(({ index }) => index)).toEqual(chain.map((_, at) => at));
      for (const [at, { receipt, hash }] of chain.entries()) {
        check(Receipt, receipt, 'the receipt');
        expect(receipt.chain.receipt_hash).toBe(hash);
        expect(receipt.chain.previous_receipt_hash).toBe(at === 0 ? null : chain[at - 1]!.hash);
      }
    }
    const tree = await two.runtime.store.tree();
    expect(tree.size).toBe(200);
    const treeHead = signTreeHead(tree, new Date().toISOString(), one.runtime.keyring.signer());
    const keys = one.runtime.keyring.jwks();
    const report = await verifyChain(
      stored.map(({ receipt }) => JSON.stringify(receipt)),
      { keys, treeHead },
    );
    expect(report).toMatchObject({ valid: true, records: 200, end: 'complete' });
    expect(report.chains.map(({ id }) => id).toSorted()).toEqual(workspaces.toSorted());

    // Each receipt can be shown to be in the tree, and no other can.
    const root = rootOf(tree);
    for (let n = 0; n < 40; n += 1) {
      const { position, hash } = stored[(n * 37) % 200]!;
      const proof = await inclusionProof(position, tree.size, one.runtime.store.nodes);
      expect(verifyInclusion(hash, proof, root)).toBe(true);
      expect(verifyInclusion(stored[(position + 1) % 200]!.hash, proof, root)).toBe(false);
    }
    for (const { receipt } of [stored[0]!, stored[99]!, stored[199]!]) {
      const verdict = await two.send('receipt.verify', { receipt_id: receipt.receipt_id });
      expect(verdict.details).toMatchObject({ valid: true });
    }
  });

  test('replays stand in it like everything else', async () => {
    const gateway = await open();
    const session = await gateway.session();
    const { id } = await gateway.submit(session, { agent: 'quick' });
    await gateway.until(id);
    const again = await gateway.send('task.replay', { task_id: id });
    await gateway.runtime.idle();
    await gateway.until((await gateway.submit(session, { agent: 'quick' })).id);
    const stored = await everyReceipt(gateway.runtime.store);
    expect(stored.map(({ receipt }) => receipt.subject.object)).toEqual(['task', 'replay_segment', 'task']);
    expect(stored[1]!.receipt.identifiers.task_id).toBe(again.resource.id);
    const report = await verifyChain(
      stored.map(({ receipt }) => receipt),
      { keys: gateway.runtime.keyring.jwks() },
    );
    expect(report).toMatchObject({ valid: true, records: 3 });
  });
});

describe('tampering with the file', () => {
  needsFile();

  async function threeReceipts(): Promise<{ gateway: TestGateway; stored: readonly StoredReceipt[] }> {
    const gateway = await open();
    const session = await gateway.session();
    for (let n = 0; n < 3; n += 1) await gateway.until((await gateway.submit(session, { agent: 'quick' })).id);
    return { gateway, stored: await everyReceipt(gateway.runtime.store) };
  }
  function edit(gateway: TestGateway, sql: string, ...params: unknown[]): void {
    const db = new Database(join(gateway.dir, 'log.db'));
    db.prepare(sql).run(...(params as []));
    db.close();
  }
  const verdictOn = async (gateway: TestGateway, { receipt }: StoredReceipt) =>
    (await gateway.send('receipt.verify', { receipt_id: receipt.receipt_id })).details;
  async function archiveOf(gateway: TestGateway) {
    const lines = (await everyReceipt(gateway.runtime.store)).map(({ receipt }) => receipt);
    return await verifyChain(lines, { keys: gateway.runtime.keyring.jwks() });
  }

  test('a changed word is found, and the record is named', async () => {
    const { gateway, stored } = await threeReceipts();
    const [, second, third] = stored as [StoredReceipt, StoredReceipt, StoredReceipt];
    const forged = JSON.stringify(second.receipt).replace('"SUCCEEDED"', '"FAILED"');
    edit(gateway, 'UPDATE receipts SET body = ? WHERE position = 1', forged);
    expect(await verdictOn(gateway, second)).toMatchObject({ valid: false, reason: 'hash_mismatch' });
    expect((await archiveOf(gateway)).firstBad).toMatchObject({
      line: 2,
      code: 'edited',
      receipt_id: second.receipt.receipt_id,
    });
    // A check is an answer, and the answer is on record.
    const { bridge } = gateway.runtime;
    const events = [];
    const actor = { id: 'auditor', kind: 'person' as const, scopes: ['*'] };
    for await (const event of bridge.events(actor, { stream: { of: 'workspace', id: second.chain } }))
      events.push(event);
    expect(events.at(-1)).toMatchObject({
      event: 'receipt.verification_failed',
      receipt_id: second.receipt.receipt_id,
      payload: { valid: false, reason: 'hash_mismatch' },
    });
    expect(await verdictOn(gateway, stored[0]!)).toMatchObject({ valid: true });
    expect(third.receipt.chain.previous_receipt_hash).toBe(second.hash);
  });

  test('a record rewritten with its own new hash does not fit its signature', async () => {
    const { gateway, stored } = await threeReceipts();
    const second = stored[1]!;
    const receipt = structuredClone(second.receipt);
    (receipt.lifecycle as { final_state: string }).final_state = 'FAILED';
    (receipt.chain as { receipt_hash: string }).receipt_hash = receiptHash(receipt);
    edit(
      gateway,
      'UPDATE receipts SET body = ?, hash = ? WHERE position = 1',
      JSON.stringify(receipt),
      receipt.chain.receipt_hash,
    );
    expect(await verdictOn(gateway, second)).toMatchObject({ valid: false });
    expect((await archiveOf(gateway)).firstBad).toMatchObject({
      code: 'signature_invalid',
      receipt_id: second.receipt.receipt_id,
    });
  });

  test('a record taken out leaves a gap', async () => {
    const { gateway, stored } = await threeReceipts();
    edit(gateway, 'DELETE FROM receipts WHERE position = 1');
    expect((await archiveOf(gateway)).firstBad).toMatchObject({
      code: 'deleted',
      receipt_id: stored[2]!.receipt.receipt_id,
    });
  });

  test('records that changed places are found, and the first is named', async () => {
    const { gateway, stored } = await threeReceipts();
    const [, second, third] = stored as [StoredReceipt, StoredReceipt, StoredReceipt];
    const swap = (position: number, id: string, { receipt, hash }: StoredReceipt) =>
      edit(
        gateway,
        'UPDATE receipts SET body = ?, hash = ?, id = ? WHERE position = ?',
        JSON.stringify(receipt),
        hash,
        id,
        position,
      );
    swap(1, 'tmp', third);
    swap(2, second.receipt.receipt_id, second);
    swap(1, third.receipt.receipt_id, third);
    expect((await archiveOf(gateway)).firstBad).toMatchObject({
      code: 'reordered',
      receipt_id: third.receipt.receipt_id,
    });
    expect(await verdictOn(gateway, third)).toMatchObject({ valid: false });
  });
});
