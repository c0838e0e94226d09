/** Effects: none without a yes that was written down, none twice, none forgotten. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { isTerminal } from '../../../src/model/words.ts';
import { Broken } from '../broken.ts';
import type { Evidence } from '../evidence.ts';

interface Call {
  readonly task: string;
  readonly tool: string;
  /** As asked for, then as rules rewrote it. */
  input: unknown;
  cleared: boolean;
  /** `tool.completed` and `tool.failed`, with the code if there is one. */
  readonly ends: string[];
  /** The same, beside the receipt: the process that ran the call came back after others had ended its task. */
  readonly late: string[];
}
export interface EffectCounts {
  readonly effects: number;
  /** Happened, and the gateway died before it could write that down. */
  readonly cut: number;
  /** Cleared and never seen to end: the record says that nobody knows. */
  readonly unknown: number;
}

export function effectsAreHeld(evidence: Evidence): EffectCounts {
  const calls = callsOf(evidence);
  const happened = new Set<string>();
  let cut = 0;
  for (const { tool, call: id, arguments: args } of evidence.effects) {
    if (happened.has(id)) throw new Broken('no effect runs twice', `${id} is in the journal again`);
    happened.add(id);
    const call = calls.get(id);
    if (!call) throw new Broken('no effect without a decision', `${id} is in no event`);
    if (!call.cleared) throw new Broken('no effect without a decision', `${id} ran and was never allowed`, call);
    if (call.tool !== tool || !isDeepStrictEqual(call.input, args))
      throw new Broken('what runs is what was allowed', id, { allowed: call, ran: { tool, args } });
    if (![...call.ends, ...call.late].includes('ok')) cut += 1;
  }
  let unknown = 0;
  for (const [id, { task, tool, ends, late }] of calls) {
    if (ends.length > 1 || late.length > 1) throw new Broken('a call ends once', id, { ends, late });
    if (late.length > 0 && !UNSEEN.includes(ends[0] ?? ''))
      throw new Broken('an end beside the receipt is of a call whose end the receipt does not know', id, {
        ends,
        late,
      });
    if ([...ends, ...late].includes('ok') && tool !== 'read_note' && !happened.has(id))
      throw new Broken('a completed call has happened', `${id} is not in the journal`);
    if (ends[0] === 'outcome_unknown') unknown += 1;
    const ended = isTerminal(evidence.tasks.get(task)?.status ?? '');
    if (ended && ends.length === 0) throw new Broken('an ended task leaves no call open', id);
    if (ended) inReceipt(evidence, task, id);
  }
  return { effects: happened.size, cut, unknown };
}

/** How a receipt names a call whose end was not seen. */
const UNSEEN = ['outcome_unknown', 'canceled'];

function callsOf({ events, asks, replays }: Evidence): Map<string, Call> {
  const calls = new Map<string, Call>();
  for (const { event, payload, task_id } of events) {
    if (replays.has(task_id ?? '')) continue; // says again what was done, and does nothing
    const call = calls.get(String(payload.tool_call_id));
    switch (event) {
      case 'tool.requested':
        if (call) throw new Broken('a call is asked for once', String(payload.tool_call_id));
        calls.set(String(payload.tool_call_id), {
          task: String(task_id),
          tool: String(payload.name),
          input: payload.input,
          cleared: false,
          ends: [],
          late: [],
        });
        break;
      case 'vendor.tollbridge.decided': {
        const { action, decision } = payload as unknown as {
          action: { tool_call_id?: string };
          decision: { verdict: string };
        };
        const decided = calls.get(action.tool_call_id ?? '');
        if (decided && (decision.verdict === 'allow' || decision.verdict === 'modify')) decided.cleared = true;
        break;
      }
      case 'tool.approved':
        // With an input it is a rule that rewrote the call; a person's yes counts when it is spent.
        if (call && payload.input) call.input = payload.input;
        break;
      case 'vendor.tollbridge.ask_used': {
        const ask = asks.get(String(payload.ask_id));
        const asked = calls.get(ask?.tool_call_id ?? '');
        if (asked && ask?.state === 'approved') asked.cleared = true;
        break;
      }
      case 'tool.completed':
      case 'tool.failed': {
        const how = event === 'tool.completed' ? 'ok' : String(payload.code ?? 'failed');
        (payload.after_end === true ? call?.late : call?.ends)?.push(how);
        break;
      }
      case 'tool.denied':
        call?.ends.push('denied');
        break;
      default:
    }
  }
  return calls;
}

function inReceipt({ receipts, tasks }: Evidence, task: string, call: string): void {
  const id = tasks.get(task)?.receipt_id;
  const receipt = receipts.find((stored) => stored.receipt.receipt_id === id)?.receipt;
  if (!receipt?.side_effects.tool_calls.some(({ call_id }) => call_id === call))
    throw new Broken('a receipt names every call', `${call} is not in the receipt of ${task}`);
}

/** A file that an event speaks of is there, whole. */
export async function filesAreThere({ artifacts, blob }: Evidence): Promise<void> {
  for (const { id, sha256, metadata } of artifacts) {
    if (typeof metadata.bytes !== 'number' || !sha256) continue;
    const bytes = await blob(sha256);
    if (!bytes || createHash('sha256').update(bytes).digest('hex') !== sha256)
      throw new Broken('files are there', `${id} has no bytes`);
  }
}
