/** Questions that wait for a person, and what a person says to them: by the way made for it, or in a message. */
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Chance } from '../random.ts';
import type { Door } from './door.ts';
import type { Ledger, Write } from './ledger.ts';

export async function openAsks(door: Door, ledger: Ledger): Promise<JsonObject[]> {
  const open = await door.list('/v1/permission-requests?status=pending');
  for (const { id, expires_at } of open as { id: string; expires_at: string }[]) ledger.asks.set(id, { expires_at });
  return open;
}

export function answerTo(ask: JsonObject, nonce: string, chance: Chance): Omit<Write, 'sent'> {
  const id = String(ask.id);
  const approval = (ask.request as { kind: string }).kind === 'approval';
  const approved = chance.happens(0.75);
  if (chance.happens(0.7)) {
    const body = approval ? { approved, reason: nonce } : { answer: nonce, reason: nonce };
    return { kind: 'answer', path: `/v1/permission-requests/${id}/respond`, body, nonce, about: id };
  }
  const part = approval
    ? { type: 'json', value: { request_id: id, approved, reason: nonce }, visibility: 'public' }
    : { type: 'json', value: { request_id: id, answer: nonce }, visibility: 'public' };
  const message = { role: 'user', parts: [part], metadata: { nonce } };
  const body = { kind: approval ? 'tool_confirmation' : 'input', message };
  return { kind: 'answer', path: `/v1/tasks/${String(ask.task_id)}/messages`, body, nonce, about: id };
}
