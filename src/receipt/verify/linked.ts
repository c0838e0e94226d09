/**
 * Compares two receipts that claim to name each other. A link holds when both gateways' receipts are valid, each names the other,
 * and both statements are true; one side's claim alone is never enough. Needs only the documents.
 */
import type { Receipt } from '../../model/receipt.ts';
import type { JsonObject } from '../../model/schema.ts';
import { UNANSWERED } from '../build/links.ts';
import { membersOf, text } from '../build/read-members.ts';
import { receiptHash } from '../seal/receipt-hash.ts';

/** The members of a receipt that links concern; a format version that lacks one is not checked for it. */
export type LinkedReceipt = Pick<Receipt, 'receipt_id' | 'identifiers' | 'chain' | 'signatures' | 'metadata'> &
  Partial<Pick<Receipt, 'issuer' | 'side_effects'>>;

/** A receipt of the other gateway and its verification result: `trouble` is undefined when it is valid. */
export interface OtherReceipt {
  readonly receipt: LinkedReceipt;
  readonly trouble?: string | undefined;
}

export interface OtherSide {
  readonly receipts: Iterable<OtherReceipt>;
  /** The hash of an event in the other gateway's log, where its events are available. */
  eventHash?(eventId: string): string | undefined;
}

export interface LinkCheck {
  readonly receipt_id: string;
  readonly direction: 'caller' | 'callee';
  readonly protocol?: string;
  /** The task on the other side, as the link states it. */
  readonly task_id: string;
  readonly state: 'linked' | 'mismatch' | 'not_available';
  /** The reason, in a sentence. */
  readonly reason?: string;
}

export function linksOf(receipt: LinkedReceipt): readonly JsonObject[] {
  const links = membersOf(receipt.metadata).linked_receipts;
  return Array.isArray(links) ? links.filter((link) => text(membersOf(link).task_id)) : [];
}

/** Looks up every link of these receipts on the other side. */
export function checkLinks(receipts: Iterable<LinkedReceipt>, other: OtherSide): readonly LinkCheck[] {
  const all = [...other.receipts];
  const byId = new Map(all.map((each) => [each.receipt.receipt_id, each]));
  const byTask = new Map(all.map((each) => [each.receipt.identifiers.task_id, each]));
  const byCall = new Map(all.flatMap((each) => callsTaken(each.receipt).map((call) => [call, each] as const)));
  const checks: LinkCheck[] = [];
  for (const receipt of receipts) {
    for (const link of linksOf(receipt)) {
      const direction = link.direction === 'caller' ? 'caller' : 'callee';
      const task_id = text(link.task_id) as string;
      const found = direction === 'caller' ? byTask.get(task_id) : calleeOf(receipt, link, { byId, byTask, byCall });
      const outcome = !found
        ? { state: 'not_available' as const, reason: 'the other receipt is not among those given' }
        : isCutOff(link, direction, found)
          ? { state: 'not_available' as const, reason: `receipt ${found.receipt.receipt_id} ${CUT_OFF}` }
          : { state: 'mismatch' as const, reason: trouble(receipt, link, direction, found, other) };
      const protocol = text(link.protocol);
      const about = { receipt_id: receipt.receipt_id, direction, task_id, ...(protocol && { protocol }) } as const;
      checks.push(
        outcome.reason === undefined ? { ...about, state: 'linked' } : { ...about, ...outcome, reason: outcome.reason },
      );
    }
  }
  return checks;
}

type Index = Readonly<Record<'byId' | 'byTask' | 'byCall', ReadonlyMap<string, OtherReceipt>>>;

/**
 * A call that was part of other work is linked by its task, before there is a receipt to name. A call that was not answered is
 * searched for.
 */
function calleeOf(receipt: LinkedReceipt, link: JsonObject, { byId, byTask, byCall }: Index): OtherReceipt | undefined {
  if (link.checked === UNANSWERED) return byCall.get(callKey(receipt.identifiers.task_id, link.tool_call_id));
  const id = text(link.receipt_id);
  return id ? byId.get(id) : byTask.get(text(link.task_id) ?? '');
}

/** The calling gateway stopped before the answer arrived: its receipt cannot name a receipt it never received. */
function isCutOff(
  link: JsonObject,
  direction: 'caller' | 'callee',
  { receipt, trouble: invalid }: OtherReceipt,
): boolean {
  const call = link.tool_call_id;
  if (direction !== 'caller' || call === undefined || invalid) return false;
  if (linksOf(receipt).some(({ direction: to, tool_call_id }) => to === 'callee' && tool_call_id === call))
    return false;
  const made = receipt.side_effects?.tool_calls.find(({ call_id }) => call_id === call);
  return membersOf(made?.metadata).outcome === 'unknown';
}
const CUT_OFF = 'accounts for the call, but its gateway stopped before it received the result';

/** The calls of other gateways that a receipt says it accepted. */
function callsTaken(receipt: LinkedReceipt): readonly string[] {
  return linksOf(receipt).flatMap(({ direction, task_id, tool_call_id }) =>
    direction === 'caller' && tool_call_id !== undefined ? [callKey(task_id, tool_call_id)] : [],
  );
}

function callKey(taskId: unknown, callId: unknown): string {
  return JSON.stringify([taskId, callId]);
}

/** The fault of a link whose other end is available; undefined when it holds. */
function trouble(
  receipt: LinkedReceipt,
  link: JsonObject,
  direction: 'caller' | 'callee',
  { receipt: found, trouble: invalid }: OtherReceipt,
  other: OtherSide,
): string | undefined {
  if (invalid) return `receipt ${found.receipt_id} of the other gateway is not valid: ${invalid}`;
  const [callee, caller] = direction === 'callee' ? [found, receipt] : [receipt, found];
  const back = linksOf(found).find((each) => answers(each, link, direction, caller, callee));
  if (!back) return `receipt ${found.receipt_id} of the other gateway does not name ${receipt.receipt_id} or its task`;
  const [toCallee, toCaller] = direction === 'callee' ? [link, back] : [back, link];
  return stated(toCallee, toCaller, callee) ?? announced(toCallee, toCaller) ?? committed(toCaller, direction, other);
}

/** Whether this link of the other receipt points back to the first one. */
function answers(
  back: JsonObject,
  link: JsonObject,
  direction: 'caller' | 'callee',
  caller: LinkedReceipt,
  callee: LinkedReceipt,
): boolean {
  if ((back.direction === 'caller') === (direction === 'caller')) return false;
  if (text(back.tool_call_id) !== text(link.tool_call_id)) return false;
  if (direction === 'callee') return back.task_id === caller.identifiers.task_id;
  // It names no receipt: the event that both name must identify it.
  if (back.checked === UNANSWERED) return text(back.event_hash) !== undefined;
  return back.receipt_id ? back.receipt_id === callee.receipt_id : back.task_id === callee.identifiers.task_id;
}

/** Checks the receipt that did the work against the caller's statements about it. */
function stated(link: JsonObject, back: JsonObject, callee: LinkedReceipt): string | undefined {
  if (link.tool_call_id !== undefined) {
    // An agent called as a tool: the whole receipt accounts for the call.
    const known =
      back.call_id === undefined || callee.side_effects?.tool_calls.some(({ call_id }) => call_id === back.call_id);
    if (!known) return `receipt ${callee.receipt_id} accounts for no such call`;
    // A call that was not answered, or was part of other work there, is linked before that receipt is sealed.
    if (link.receipt_id === undefined) return undefined;
  }
  if (link.receipt_hash === undefined) return `the link to receipt ${callee.receipt_id} states no hash`;
  if (link.receipt_hash !== receiptHash(callee))
    return `receipt ${callee.receipt_id} has another hash than the link states`;
  if (link.issuer !== undefined && callee.issuer && link.issuer !== callee.issuer.id)
    return `receipt ${callee.receipt_id} was issued by ${callee.issuer.id}, not by ${text(link.issuer)}`;
  return undefined;
}

/** Both sides must name the same event of the calling gateway. */
function announced(toCallee: JsonObject, toCaller: JsonObject): string | undefined {
  const [sent, received] = [toCallee.event_hash, toCaller.event_hash];
  return sent === received ? undefined : 'the two receipts name different events as the one that gave the work';
}

/** Only the log of the calling gateway can prove that event. */
function committed(toCaller: JsonObject, direction: 'caller' | 'callee', other: OtherSide): string | undefined {
  const [id, hash] = [text(toCaller.event_id), text(toCaller.event_hash)];
  if (direction === 'callee' || !id || !hash) return undefined;
  const actual = other.eventHash?.(id);
  return actual === undefined || actual === hash ? undefined : `event ${id} of the other gateway has another hash`;
}
