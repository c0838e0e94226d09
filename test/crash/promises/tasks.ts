/** Tasks: each lives a legal life, ends once, and has exactly one receipt when it has ended. */
import type { CoreEvent } from '../../../src/model/events.ts';
import { isTerminal } from '../../../src/model/words.ts';
import { canonicalJson } from '../../../src/receipt/seal/canonical-json.ts';
import { verifyChain } from '../../../src/receipt/verify/chain.ts';
import { Broken } from '../broken.ts';
import type { Ledger } from '../clients/ledger.ts';
import type { Evidence } from '../evidence.ts';

/** The protocol's table, spelled out here on purpose. */
const NEXT: Readonly<Record<string, readonly string[]>> = {
  SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
  WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
  INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
  AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
};
const FINAL: Readonly<Record<string, string>> = { COMPLETED: 'SUCCEEDED', FAILED: 'FAILED', CANCELED: 'CANCELED' };

export function livesAreLegal(evidence: Evidence, ledger: Ledger): void {
  const lives = livesOf(evidence.events);
  for (const [id, { states, after }] of lives) {
    if (states[0] !== 'SUBMITTED') throw new Broken('a task begins once', `${id} begins as ${states[0]}`);
    for (const [at, state] of states.slice(1).entries()) {
      const from = states[at] ?? '';
      if (!NEXT[from]?.includes(state)) throw new Broken('transitions are legal', `${id}: ${from} to ${state}`, states);
    }
    const task = evidence.tasks.get(id);
    const last = states.at(-1) ?? '';
    if (task?.status !== last)
      throw new Broken('a task is where its events say', `${id}: ${task?.status}, not ${last}`);
    if (evidence.runs.has(id) === isTerminal(last))
      throw new Broken(
        'a task is where its events say',
        `${id} is ${last}, and its run ${evidence.runs.has(id) ? 'is' : 'is not'} there`,
      );
    if (after.length > 0) throw new Broken('an ended task stays as it was', id, after);
  }
  for (const { task, status } of ledger.looks) {
    if (!lives.get(task)?.states.includes(status))
      throw new Broken('what was shown is there', `${task} was shown as ${status}`, lives.get(task)?.states);
  }
}

function livesOf(events: readonly CoreEvent[]): Map<string, { states: string[]; after: CoreEvent[] }> {
  const lives = new Map<string, { states: string[]; after: CoreEvent[] }>();
  for (const event of events) {
    if (!event.task_id) continue;
    const life = lives.get(event.task_id) ?? { states: [], after: [] };
    lives.set(event.task_id, life);
    const to = event.event.startsWith('task.') ? String(event.payload.to) : undefined;
    // A tool that ends after its task leaves a note beside the sealed record, marked as such.
    if (isTerminal(life.states.at(-1) ?? '') && event.payload.after_end !== true) life.after.push(event);
    if (to) life.states.push(to);
  }
  return lives;
}

/** Work that policy wants a person to allow does not begin before one did. */
export function guardedWorkWaits({ events, asks, replays }: Evidence): void {
  const allowed = new Map<string, boolean>();
  for (const { event, payload, task_id, id } of events) {
    if (!task_id || replays.has(task_id)) continue;
    if (event === 'vendor.tollbridge.decided' && !allowed.has(task_id)) {
      const { action, decision } = payload as unknown as { action: { kind: string }; decision: { verdict: string } };
      if (action.kind === 'prompt') allowed.set(task_id, decision.verdict !== 'escalate');
    }
    const ask = event === 'vendor.tollbridge.ask_used' ? asks.get(String(payload.ask_id)) : undefined;
    if (ask?.action.kind === 'prompt' && ask.state === 'approved') allowed.set(task_id, true);
    if (/^(agent\.|span\.|tool\.requested$|artifact\.)/.test(event) && allowed.get(task_id) === false)
      throw new Broken('guarded work waits for a yes', `${task_id} went on with ${id} before anyone allowed it`);
  }
}

/**
 * What an agent said, it said once: each message is there one time, and its pieces make up the whole. One that was told
 * to stop may have shown more on its way than it says in the end.
 */
export function nothingIsSaidTwice({ events, replays }: Evidence): void {
  const pieces = new Map<string, string>();
  const whole = new Map<string, string>();
  const stopped = new Set<string | null | undefined>();
  for (const { event, payload, task_id } of events) {
    if (replays.has(task_id ?? '')) continue;
    if (event === 'user.message' && JSON.stringify(payload.message).includes('please stop')) stopped.add(task_id);
    if (event === 'vendor.tollbridge.message_delta') {
      const id = String(payload.message_id);
      pieces.set(id, (pieces.get(id) ?? '') + String(payload.text));
    }
    if (event !== 'agent.message') continue;
    const { id, parts } = payload.message as unknown as { id: string; parts: { text?: string }[] };
    if (whole.has(id)) throw new Broken('nothing is said twice', `${task_id} said ${id} again`);
    const text = parts[0]?.text ?? '';
    whole.set(id, text);
    const shown = pieces.get(id) ?? '';
    if (stopped.has(task_id) ? !shown.startsWith(text) : shown !== text)
      throw new Broken('nothing is said twice', `the pieces of ${id} are not the message`, {
        pieces: shown,
        message: text,
      });
  }
}

export async function receiptsVerify({ events, tasks, receipts, treeSize, keys }: Evidence): Promise<void> {
  const lines = receipts.map(({ receipt }) => canonicalJson(receipt as never));
  const report = await verifyChain(lines, { keys });
  if (!report.valid || report.records !== receipts.length)
    throw new Broken('the chain verifies', `${report.records} of ${receipts.length} receipts`, report.firstBad);
  if (treeSize !== receipts.length)
    throw new Broken('the chain verifies', `the tree holds ${treeSize} of ${receipts.length} receipts`);

  const byTask = new Map<string, (typeof receipts)[number]>();
  for (const stored of receipts) {
    const id = stored.receipt.identifiers.task_id;
    if (byTask.has(id)) throw new Broken('one receipt per task', `${id} has two`);
    byTask.set(id, stored);
  }
  const announced = new Map<string, string>();
  for (const { event, task_id, receipt_id } of events)
    if (event === 'receipt.issued') announced.set(String(task_id), String(receipt_id));
  for (const { id, status, receipt_id } of tasks.values()) {
    const receipt = byTask.get(id)?.receipt;
    if (isTerminal(status) !== (receipt !== undefined))
      throw new Broken('one receipt per ended task', `${id} is ${status} and has ${receipt ? 'one' : 'none'}`);
    if (!receipt) continue;
    const named = [receipt.receipt_id, receipt_id, announced.get(id)];
    if (new Set(named).size !== 1) throw new Broken('one receipt per ended task', `${id} names others`, named);
    if (receipt.lifecycle.final_state !== FINAL[status])
      throw new Broken(
        'a receipt says how it ended',
        `${id} is ${status}, its receipt says ${receipt.lifecycle.final_state}`,
      );
    byTask.delete(id);
  }
  for (const id of byTask.keys()) throw new Broken('one receipt per ended task', `${id} is unknown and has one`);
}
