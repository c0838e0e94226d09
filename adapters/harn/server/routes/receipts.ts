/** Proof: receipts as resources, as bare documents, in batches; checked on demand. */
import { RECEIPT_JSON } from '../../../../mappings/harn.ts';
import {
  batchRoot,
  encodeCbor,
  Fault,
  type JsonObject,
  RECEIPT_CBOR,
  type Receipt,
  Receipt as ReceiptDocument,
  type ReceiptResource,
  type Row,
} from '../../../../src/index.ts';
import type { WireShape } from '../../revisions/schemas.ts';
import type { Call, Reply, RouteContext, Routes } from '../call.ts';
import { requireScope } from '../exchange.ts';
import { listPage, whereOf } from '../pages.ts';

type Ids =
  | 'listReceipts'
  | 'listTaskReceipts'
  | 'getReceipt'
  | 'getReceiptBatch'
  | 'getReceiptSchema'
  | 'verifyReceipt'
  | 'getReceiptKeys';

/** Written once: the schema holds for good. */
const RECEIPT_SCHEMA_TEXT = JSON.stringify({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'receipt-2026-04-25',
  ...ReceiptDocument,
});

/** The number of receipts in a batch, in the order of their workspace's chain. */
const BATCH = 64;

export function receiptRoutes({ bridge, deps }: RouteContext): Pick<Routes, Ids> {
  return {
    listReceipts: async (call) => {
      const where = whereOf(call.query, 'workspace_id', 'task_id');
      return { body: await listPage(bridge, call, { object: 'receipt', where }) };
    },
    listTaskReceipts: async (call) => {
      const task_id = call.params.task_id!;
      // Viewed with the scope that this needs: a caller that may read receipts may lack the scope to read tasks.
      await bridge.view({ ...call.actor, scopes: [...call.actor.scopes, 'tasks:read'] }, 'task', task_id);
      return { body: await listPage(bridge, call, { object: 'receipt', where: { task_id } }) };
    },
    getReceipt: async (call) => {
      const receipt = await bridge.view<ReceiptResource & Row>(call.actor, 'receipt', call.params.receipt_id!);
      return negotiated(call, receipt);
    },
    getReceiptBatch: async (call) => ({ body: await batch(call) }),
    verifyReceipt: async ({ actor, params, body, once }) => {
      const { trust_anchor, at_time } = body as WireShape<'VerifyReceiptRequest'>;
      const { details } = await bridge.submit({
        kind: 'receipt.verify',
        actor,
        ...once,
        body: { receipt_id: params.receipt_id!, ...(trust_anchor && { trust_anchor }), ...(at_time && { at_time }) },
      });
      return { body: { object: 'receipt_verification', reason: null, ...details } };
    },
    getReceiptSchema: async () => ({
      bytes: RECEIPT_SCHEMA_TEXT,
      type: 'application/schema+json',
      headers: { 'cache-control': 'public, max-age=300' },
    }),
    getReceiptKeys: async () => ({ body: deps.jwks(), headers: { 'cache-control': 'public, max-age=300' } }),
  };

  async function batch({ actor, params }: Call): Promise<WireShape<'ReceiptBatch'>> {
    const id = params.batch_id!;
    const [, workspace_id, number] = /^(.+)\.(\d{1,9})$/.exec(id) ?? [];
    const absent = new Fault('not_found', `no receipt_batch ${id}`);
    if (!workspace_id) throw absent;
    // A batch covers all receipts of a workspace: its root is useless to a reader that may see only some of them.
    requireScope(actor, 'others:read');
    let skip = Number(number) * BATCH;
    let after: string | undefined;
    while (skip > 0) {
      const page = await bridge.list(actor, {
        object: 'receipt',
        where: { workspace_id },
        limit: Math.min(skip, 200),
        ...(after && { after }),
      });
      if (!page.next) throw absent;
      after = page.next;
      skip -= page.data.length;
    }
    const { data } = await bridge.list<ReceiptResource & Row>(actor, {
      object: 'receipt',
      where: { workspace_id },
      limit: BATCH,
      ...(after && { after }),
    });
    if (data.length === 0) throw absent;
    const leaves = data.map((receipt) => documentOf(receipt).chain.receipt_hash);
    const complete = leaves.length === BATCH;
    return {
      object: 'receipt_batch',
      id,
      algorithm: 'sha256-pairs',
      leaves,
      root: batchRoot(leaves),
      size: leaves.length,
      complete,
      sealed_at: complete ? (data.at(-1)?.issued_at ?? null) : null,
    };
  }
}

function documentOf(receipt: ReceiptResource): Receipt {
  return (receipt.wire as JsonObject).payload as Receipt;
}

/** The resource with its envelope, unless the bare document is preferred by name. */
function negotiated({ http }: Call, receipt: ReceiptResource): Reply {
  const accept = http?.request.headers.accept ?? '';
  if (/application\/vnd\.harn\.receipt\+cbor/i.test(accept)) {
    return { bytes: encodeCbor(documentOf(receipt)), type: RECEIPT_CBOR, headers: { vary: 'accept' } };
  }
  if (/application\/vnd\.harn\.receipt\+json/i.test(accept)) {
    return { bytes: JSON.stringify(documentOf(receipt)), type: RECEIPT_JSON, headers: { vary: 'accept' } };
  }
  return { body: receipt, headers: { vary: 'accept' } };
}
