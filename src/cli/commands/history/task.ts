/**
 * `tollbridge task <id>`: one task from beginning to end, with its questions, its receipt and the result of verifying
 * it.
 */

import type { AskRecord } from '../../../model/asks.ts';
import type { CoreEvent } from '../../../model/events.ts';
import type { Receipt } from '../../../model/receipt.ts';
import type { Task } from '../../../model/resources.ts';
import type { JsonObject } from '../../../model/schema.ts';
import { asText } from '../../../model/values/as-text.ts';
import { type Loss, lossIn } from '../../../model/values/loss.ts';
import { isTerminal } from '../../../model/words.ts';
import type { Row, Store } from '../../../ports/index.ts';
import { createStoredVerifier } from '../../../receipt/verify/stored.ts';
import { type CommonOptions, lookInto, type OpenLog } from '../../context.ts';
import { findTask } from '../../find.ts';
import { createNarrator } from '../../output/event-lines.ts';
import { brief, briefArguments, eventNumber, terminalText } from '../../output/terminal-text.ts';
import { calledAgain } from '../../own-name.ts';

export async function showTask(id: string, options: CommonOptions & { readonly json?: boolean }): Promise<void> {
  await lookInto(options, async (openLog) => {
    const { store } = openLog;
    const task = await findTask(store, id);
    const events: CoreEvent[] = [];
    for await (const event of store.read({ stream: { of: 'task', id: task.id } })) events.push(event);
    const asks = await asksOf(store, task.id);
    const proof = await proofOf(openLog, task.id);
    if (options.json) {
      const [receipt, verification] = [proof?.receipt ?? null, proof?.report ?? null];
      const whole = { task, events, asks, loss: lossesIn(events), receipt, verification };
      process.stdout.write(`${JSON.stringify(whole)}\n`);
      return;
    }
    const asked = questions(asks, calledAgain(options));
    const lines = [...heading(task), '', ...story(events), '', ...asked, ...losses(events), ...proven(task, proof)];
    process.stdout.write(terminalText(`${lines.join('\n')}\n`));
  });
}

async function asksOf(store: Store, task_id: string): Promise<readonly (AskRecord & Row)[]> {
  return await store.list<AskRecord & Row>({ object: 'ask', where: { task_id }, limit: 200 });
}

async function proofOf({ store, keys }: OpenLog, task: string) {
  const [stored] = await store.receipts({ task, limit: 1 });
  if (!stored) return undefined;
  const report = await createStoredVerifier({ store, keys: () => keys })(stored, {});
  return { receipt: stored.receipt, report };
}

function heading(task: Task): readonly string[] {
  const { failure } = task;
  const ended = task.completed_at ?? task.canceled_at;
  return [
    `${task.id}  ${task.status}${failure ? `  ${brief(failure.code)}: ${brief(failure.message, 200)}` : ''}`,
    `  for ${task.created_by}, done by ${task.assigned_agent_id ?? 'an agent outside'}`,
    `  begun ${task.started_at ?? 'not yet'}${ended ? `, ended ${ended}` : ''}`,
    ...(task.parent_task_id ? [`  from task ${task.parent_task_id}`] : []),
  ];
}

function story(events: readonly CoreEvent[]): readonly string[] {
  const narrate = createNarrator();
  return events.flatMap((event) => {
    const line = narrate(event);
    return line ? [`  #${eventNumber(event.id).padEnd(5)} ${line.word.padEnd(9)}  ${line.text}`] : [];
  });
}

function questions(asks: readonly AskRecord[], again: string): readonly string[] {
  if (asks.length === 0) return ['no approval was requested'];
  return asks.flatMap((ask) => [
    `question ${ask.id}: ${brief(ask.question, 200)}`,
    `  what:    ${brief(asText(ask.action.tool ?? ask.kind))} (${briefArguments(ask.action.arguments ?? {}, 400)})`,
    ask.state === 'open'
      ? `  answer:  none yet; ${again} approve ${ask.id}`
      : `  answer:  ${ask.state}${ask.answered_by ? ` by ${ask.answered_by} at ${ask.answered_at}` : ''}`,
  ]);
}

/** What translations could not carry, with the event that says so. */
function lossesIn(events: readonly CoreEvent[]): readonly (Loss & { readonly event_id: string })[] {
  return events.flatMap(({ id, payload }) => lossIn(payload as JsonObject).map((loss) => ({ event_id: id, ...loss })));
}

function losses(events: readonly CoreEvent[]): readonly string[] {
  const found = lossesIn(events);
  if (found.length === 0) return [];
  const lines = found.map(
    ({ event_id, aspect, why }) => `  #${eventNumber(event_id)} ${brief(aspect)}: ${brief(why, 300)}`,
  );
  return ['could not be carried:', ...lines];
}

/** Outcomes of its calls, counted from the receipt. */
function calls({ side_effects: { tool_calls } }: Receipt): readonly string[] {
  const counts = new Map<string, number>();
  for (const { metadata, status } of tool_calls) {
    const word = asText(metadata?.outcome ?? status);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts.size > 0 ? [`  calls ${[...counts].map(([word, count]) => `${count} ${word}`).join(', ')}`] : [];
}

function proven(task: Task, proof: Awaited<ReturnType<typeof proofOf>>): readonly string[] {
  if (!proof) return [isTerminal(task.status) ? 'no receipt is kept for it' : 'its receipt is written when it ends'];
  const { receipt, report } = proof;
  const word = report.valid ? 'ok: unchanged, in order, signed' : `BAD: ${report.reason}`;
  return [
    `receipt ${receipt.receipt_id}  ${word}`,
    ...calls(receipt),
    `  hash ${receipt.chain.receipt_hash}`,
    `  signed by ${receipt.signatures?.map(({ key_id }) => key_id).join(', ') ?? 'nobody'}`,
  ];
}
