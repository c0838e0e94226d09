/** Follows the demo: prints events as they happen, and asks the agent's question at this terminal. */

import type { Actor } from '../../../model/actions.ts';
import type { AskRecord, PendingAct } from '../../../model/asks.ts';
import type { CoreEvent } from '../../../model/events.ts';
import { Fault } from '../../../model/faults.ts';
import { asText } from '../../../model/values/as-text.ts';
import type { Row } from '../../../ports/index.ts';
import type { CoreRuntime } from '../../../runtime/assemble.ts';
import { askYesOrNo } from '../../confirm.ts';
import { onStop } from '../../stop-signals.ts';
import type { DemoOutput } from './demo-output.ts';

const ENDS = ['task.completed', 'task.failed', 'task.canceled'];

/** Answers that do not come from a person at this terminal. */
export interface AnswerOptions {
  readonly yes?: boolean;
  readonly no?: boolean;
  readonly wait?: boolean;
  readonly port?: string;
}

interface Watching extends AnswerOptions {
  readonly output: DemoOutput;
}

/** Prints events until the task has ended, and asks its questions at this terminal. */
export async function watch(
  core: CoreRuntime,
  actor: Actor,
  taskId: string,
  how: Watching,
): Promise<CoreEvent | 'interrupted'> {
  const stop = new AbortController();
  const open = new Map<string, AbortController>();
  const letGo = onStop(() => stop.abort());
  let failure: unknown;

  const answering = async (ask: AskRecord, withdraw: AbortSignal) => {
    const act = await core.bridge.pendingAct({ ...actor, interactive: true }, ask.id).catch((thrown) => {
      if (withdraw.aborted || (thrown instanceof Fault && thrown.kind === 'conflict')) return undefined;
      throw thrown;
    });
    // Closed in the meantime.
    if (!act) return;
    const said = await answerFor(ask, act, withdraw, how);
    if (said === 'interrupted') return stop.abort();
    if (said === undefined) return;
    const body = { ask_id: ask.id, ...said };
    await core.bridge.submit({ kind: 'ask.answer', actor: { ...actor, interactive: true }, body }).catch((thrown) => {
      // Another answer came first; the log names its author, and the output shows it.
      if (!(thrown instanceof Fault && thrown.kind === 'conflict')) throw thrown;
    });
  };
  const put = (ask: AskRecord) => {
    const withdraw = new AbortController();
    open.set(ask.id, withdraw);
    answering(ask, withdraw.signal).catch((thrown) => {
      failure = thrown;
      stop.abort();
    });
  };

  const asked: string[] = [];
  const past = (await core.store.tip({ of: 'task', id: taskId })) ?? '';
  try {
    for await (const event of core.bridge.follow(actor, { stream: { of: 'task', id: taskId } }, stop.signal)) {
      if (event.event === 'vendor.tollbridge.ask_closed') open.get(asText(event.payload.ask_id))?.abort();
      how.output.event(event);
      if (event.event === 'vendor.tollbridge.ask_opened') {
        asked.push(event.payload.ask.id);
      }
      // Past events are printed first; a question among them is asked only if it is still open.
      for (const id of event.id >= past ? asked.splice(0) : []) {
        const ask = await core.bridge.view<AskRecord & Row>(actor, 'ask', id);
        if (ask.state === 'open') put(ask);
      }
      if (ENDS.includes(event.event)) return event;
    }
  } finally {
    letGo();
    for (const withdraw of open.values()) withdraw.abort();
  }
  if (failure) throw failure;
  return 'interrupted';
}

/** Undefined when the answer is left to another surface. */
async function answerFor(
  ask: AskRecord,
  act: PendingAct,
  withdraw: AbortSignal,
  { yes, no, wait, port, output }: Watching,
): Promise<{ approved: boolean; reason?: string } | 'interrupted' | undefined> {
  output.question(ask, act);
  if (yes || no) {
    output.answeredByOption(yes ? 'yes' : 'no');
    return { approved: yes === true };
  }
  if (wait) return undefined;
  const said = await askYesOrNo(output.terminal, 'Allow it? [y/n] ', withdraw);
  if (said === 'interrupted') return said;
  if (said === 'withdrawn') {
    output.answeredElsewhere();
    return undefined;
  }
  if (said !== 'gone') return { approved: said === 'yes' };
  if (port !== undefined) return undefined;
  output.notAnswered();
  return { approved: false, reason: 'standard input ended without an answer' };
}
