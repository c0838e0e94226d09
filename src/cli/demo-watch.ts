/** The demo while it runs: tells what happens as it happens, and puts the agent's question to whoever is here. */

import type { House } from '../compose.ts';
import type { Actor } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { AskRecord, PendingAct } from '../model/asks.ts';
import type { CoreEvent } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { AskOpenedPayload } from '../model/payloads.ts';
import type { Row } from '../ports.ts';
import type { Telling } from './demo-telling.ts';
import { askYesOrNo } from './person.ts';
import { onStop } from './stopping.ts';

const ENDS = ['task.completed', 'task.failed', 'task.canceled'];

/** How the question is answered when not by a person here. */
export interface AnswerOptions {
  readonly yes?: boolean;
  readonly no?: boolean;
  readonly wait?: boolean;
  readonly port?: string;
}

interface Watching extends AnswerOptions {
  readonly telling: Telling;
}

/** Tells what happens until the task has ended, and puts its questions to whoever is here. */
export async function watch(
  house: House,
  actor: Actor,
  taskId: string,
  how: Watching,
): Promise<CoreEvent | 'interrupted'> {
  const stop = new AbortController();
  const open = new Map<string, AbortController>();
  const letGo = onStop(() => stop.abort());
  let failure: unknown;

  const answering = async (ask: AskRecord, withdraw: AbortSignal) => {
    const act = await house.bridge.pendingAct({ ...actor, interactive: true }, ask.id).catch((thrown) => {
      if (withdraw.aborted || (thrown instanceof Fault && thrown.kind === 'conflict')) return undefined;
      throw thrown;
    });
    // Closed in the meantime.
    if (!act) return;
    const said = await answerFor(ask, act, withdraw, how);
    if (said === 'interrupted') return stop.abort();
    if (said === undefined) return;
    const body = { ask_id: ask.id, ...said };
    await house.bridge.submit({ kind: 'ask.answer', actor: { ...actor, interactive: true }, body }).catch((thrown) => {
      // Somebody else was quicker; the log says who, and the telling with it.
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
  const past = (await house.store.tip({ of: 'task', id: taskId })) ?? '';
  try {
    for await (const event of house.bridge.follow(actor, { stream: { of: 'task', id: taskId } }, stop.signal)) {
      if (event.event === 'vendor.tollbridge.ask_closed') open.get(asText(event.payload.ask_id))?.abort();
      how.telling.event(event);
      if (event.event === 'vendor.tollbridge.ask_opened') {
        asked.push((event.payload as unknown as AskOpenedPayload).ask.id);
      }
      // What is past is told first, and a question in it is put only if it is still one.
      for (const id of event.id >= past ? asked.splice(0) : []) {
        const ask = await house.bridge.view<AskRecord & Row>(actor, 'ask', id);
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

/** Undefined when it is left to others. */
async function answerFor(
  ask: AskRecord,
  act: PendingAct,
  withdraw: AbortSignal,
  { yes, no, wait, port, telling }: Watching,
): Promise<{ approved: boolean; reason?: string } | 'interrupted' | undefined> {
  telling.question(ask, act);
  if (yes || no) {
    telling.answeredByOption(yes ? 'yes' : 'no');
    return { approved: yes === true };
  }
  if (wait) return undefined;
  const said = await askYesOrNo(telling.terminal, 'Allow it? [y/n] ', withdraw);
  if (said === 'interrupted') return said;
  if (said === 'withdrawn') {
    telling.answeredElsewhere();
    return undefined;
  }
  if (said !== 'gone') return { approved: said === 'yes' };
  if (port !== undefined) return undefined;
  telling.nobodyHere();
  return { approved: false, reason: 'standard input ended without an answer' };
}
