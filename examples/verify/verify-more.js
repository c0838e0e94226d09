/**
 * The twin of verify_more.py. What verify.js leaves out: every event against the signed head of the log, also where the oldest were
 * pruned; receipts the log names; replays; links that one side alone states; links of single calls. Called as verify.js.
 */
import * as verify from './verify.js';
import { bytesOf, keysIn, linesOf, linksOf, need, sha, signed, text } from './verify.js';

/** RFC 6962, one leaf after the other: `peaks` begins as what is left of pruned events, the roots of their subtrees. */
async function rootOf(peaks, size, leaves) {
  let at = size;
  for (const leaf of leaves) {
    let node = leaf;
    for (let index = at; index % 2 === 1; index = (index - 1) / 2)
      node = await sha(Uint8Array.of(1), peaks.pop(), node);
    peaks.push(node);
    at += 1;
  }
  let top = peaks.pop() ?? (await sha());
  while (peaks.length > 0) top = await sha(Uint8Array.of(1), peaks.pop(), top);
  return text(top);
}

export async function check(files, trusted = []) {
  const { receipts, leaves } = await verify.check(files, trusted);
  for (const line of linesOf(files['events.jsonl'])) {
    const { id, event, receipt_id } = JSON.parse(line);
    need(event !== 'receipt.issued' || receipts.has(receipt_id), `${id}: the receipt it names is missing`);
  }
  const roots = new Map();
  for (const [name, { replay_input }] of receipts) {
    const { sha256, metadata } = replay_input.materials[0];
    if (!roots.has(metadata.task_id)) roots.set(metadata.task_id, sha256);
    const same = roots.get(metadata.task_id) === sha256;
    need(same, `${name}: it replays other events than its source was sealed over`);
  }
  const { head: whole, pruned } = JSON.parse(files['log-head.json']);
  const { signature, ...head } = whole;
  await signed({ ...head, object: 'event_tree_head' }, signature, keysIn(files, trusted), 'log-head.json');
  const top = await rootOf(pruned.frontier.map(bytesOf), pruned.size, leaves.values());
  const same = head.size === pruned.size + leaves.size && head.root === top;
  need(same, 'log-head.json: it is not of these events');
  return { receipts, leaves };
}

export function checkLinks(ours, theirs) {
  let found = verify.checkLinks(ours, theirs);
  const tasks = new Map([...ours.receipts.values()].map((receipt) => [receipt.identifiers.task_id, receipt]));
  for (const [name, callee] of theirs.receipts) {
    for (const claim of linksOf(callee)) {
      const caller = claim.direction === 'caller' ? tasks.get(claim.task_id) : undefined;
      if (!caller) continue;
      const same = linksOf(caller).filter(({ tool_call_id }) => tool_call_id === claim.tool_call_id);
      // A call that was not answered is stated by the event that gave it, and nothing else.
      const open = same.some((link) => link.checked === 'unanswered' && link.event_hash === claim.event_hash);
      const ends = same.map(({ receipt_id, task_id }) => receipt_id ?? task_id);
      const named = open || ends.includes(name) || ends.includes(callee.identifiers.task_id);
      // A caller that was cut off in the middle of a call never learned whose receipt to name.
      const made = caller.side_effects.tool_calls.find(({ call_id }) => call_id === claim.tool_call_id);
      need(named || made?.metadata?.outcome === 'unknown', `${name}: ${caller.receipt_id} does not name it`);
      const event = ours.leaves.get(claim.event_id);
      need(!event || claim.event_hash === text(event), `${name}: it was given by another ${claim.event_id}`);
      const known = callee.side_effects.tool_calls.some(({ call_id }) => call_id === claim.call_id);
      need(!claim.tool_call_id || known, `${name}: it accounts for no call ${claim.call_id}`);
      // Those that name a receipt were counted before.
      if (named && !ends.includes(name)) found += 1;
    }
  }
  return found;
}

export const main = (one, other) => verify.main(one, other, checkLinks);
