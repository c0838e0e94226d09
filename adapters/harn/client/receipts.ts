/** A remote's receipt, checked the moment it arrives: shape, hash, signature, and that it is about the task we gave. */
import { asText, type JsonObject, type Receipt, verifyReceipt } from '../../../src/index.ts';
import { type Contents, contentsOf } from '../../../src/transport/outbound/carried.ts';
import { type Remote, RemoteRefusal, segment } from '../../../src/transport/outbound/remote.ts';
import type { RemoteReceipt } from '../../../src/transport/outbound/remote-work.ts';
import type { RemoteTask } from './translate.ts';
import { readList } from './watch.ts';

/** As it stands in our receipt. */
export function toRemoteReceipt(checked: CheckedReceipt): RemoteReceipt {
  const { receipt_id, receipt_hash, issuer, key_ids, valid, reason, holds } = checked;
  const key_id = key_ids?.[0];
  return { receipt_id, receipt_hash, issuer, key_id, checked: valid ? 'valid' : 'invalid', reason, holds };
}

export type CheckedReceipt = {
  readonly receipt_id: string;
  readonly valid: boolean;
  /** The first thing that is wrong with it. */
  readonly reason?: string;
  readonly receipt_hash?: string;
  readonly issuer?: string;
  readonly key_ids?: readonly string[];
  readonly holds?: Contents;
};

const KEYS_PATH = '/.well-known/harn-receipt-keys.json';
const OUTCOME: Readonly<Record<string, string>> = { COMPLETED: 'SUCCEEDED', FAILED: 'FAILED', CANCELED: 'CANCELED' };

/** Undefined when the remote has none to give. */
export async function checkReceipt(remote: Remote, task: RemoteTask): Promise<CheckedReceipt | undefined> {
  const id = task.receipt_id ?? (await firstOf(remote, task.id));
  if (!id) return undefined;
  const resource = await unlessAbsent(remote.call<JsonObject>('GET', `/v1/receipts/${segment(id)}`));
  if (!resource) return { receipt_id: id, valid: false, reason: 'not_available' };
  const wire = resource.wire as JsonObject | undefined;
  const document = (wire?.payload ?? resource) as Receipt;
  const keys = await publishedKeys(remote);
  if (!keys) return { receipt_id: id, valid: false, reason: 'keys_not_published', ...about(document) };
  const { valid, reason } = verifyReceipt(document, { keys: keys as never });
  if (!valid) return { receipt_id: id, valid, reason: reason ?? 'invalid', ...about(document) };
  const trouble = mismatch(document, id, task);
  const holds = contentsOf(document);
  return { receipt_id: id, valid: !trouble, ...(trouble && { reason: trouble }), ...about(document), holds };
}

/** A valid receipt of another task proves nothing about this one. */
function mismatch({ receipt_id, identifiers, lifecycle }: Receipt, id: string, task: RemoteTask): string | undefined {
  if (receipt_id !== id) return 'another_receipt';
  if (identifiers.task_id !== task.id) return 'another_task';
  return lifecycle.final_state === (Object.hasOwn(OUTCOME, task.status) ? OUTCOME[task.status] : undefined)
    ? undefined
    : 'another_outcome';
}

function about(document: Partial<Receipt>): Partial<CheckedReceipt> {
  const { chain, issuer, signatures } = document ?? {};
  return {
    ...(typeof chain?.receipt_hash === 'string' && { receipt_hash: chain.receipt_hash }),
    ...(typeof issuer?.id === 'string' && { issuer: issuer.id }),
    ...(Array.isArray(signatures) && { key_ids: signatures.map(({ key_id }) => asText(key_id)) }),
  };
}

async function firstOf(remote: Remote, taskId: string): Promise<string | undefined> {
  const body = await unlessAbsent(remote.call<unknown>('GET', `/v1/tasks/${segment(taskId)}/receipts?limit=1`));
  const first = body === undefined ? undefined : (readList(body).data[0] as { id?: unknown } | undefined);
  return typeof first?.id === 'string' ? first.id : undefined;
}

/** At the address in its card, if that is below the remote's own; otherwise at the well-known path. */
async function publishedKeys(remote: Remote): Promise<{ keys: readonly unknown[] } | undefined> {
  const card = await unlessAbsent(remote.call<{ metadata?: JsonObject }>('GET', '/v1/agent-card'));
  const named = card?.metadata?.receipt_keys_url;
  const own = remote.base.href.replace(/\/$/, '');
  const path = typeof named === 'string' && named.startsWith(`${own}/`) ? named.slice(own.length) : KEYS_PATH;
  const found = await unlessAbsent(remote.call<{ keys?: unknown }>('GET', path));
  return Array.isArray(found?.keys) ? (found as { keys: readonly unknown[] }) : undefined;
}

async function unlessAbsent<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (cause) {
    if (cause instanceof RemoteRefusal && cause.status < 500 && cause.status !== 429) return undefined;
    throw cause;
  }
}
