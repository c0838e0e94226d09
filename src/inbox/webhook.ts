/**
 * Webhooks for approvals: each question that opens, and its end, is sent to the configured addresses, signed, until it
 * is accepted or the question is over. At least once: after a restart open questions are sent again under the same id.
 * Sends to configured addresses only, follows no redirect, and reads nothing of the response but its status.
 */

import { createHmac } from 'node:crypto';
import type { Actor } from '../model/actions.ts';
import type { AskRecord } from '../model/asks.ts';
import type { CoreEvent } from '../model/events.ts';
import type { AskClosedPayload } from '../model/payloads.ts';
import type { Task } from '../model/resources.ts';
import { asText } from '../model/values/as-text.ts';
import { everyRow } from '../model/values/every-row.ts';
import { anySignal } from '../model/values/signals.ts';
import { visibleLine } from '../model/values/visible-text.ts';
import type { Bridge, Clock, Closable, Logger, Row } from '../ports/index.ts';
import { outgoingTrace, type TraceMembers, taskTrace } from '../transport/outbound/trace-context.ts';
import { dialogText } from './question-text.ts';

export interface Recipient {
  readonly name: string;
  readonly url: string;
  /** The key that signs messages. */
  readonly key: string;
  /** Makes the decision link of a question; undefined when this recipient is only notified. */
  readonly link: ((askId: string) => string) | undefined;
}

export interface WebhookDeps {
  readonly bridge: Bridge;
  readonly actor: Actor;
  readonly recipients: readonly Recipient[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly fetch?: typeof fetch;
  /** Waits, or rejects when the signal fires. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

type Ask = AskRecord & Row;

interface Delivery {
  readonly id: string;
  readonly body: string;
  /** The trace it is part of. */
  readonly trace: Promise<TraceMembers>;
}

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 5 * 60_000;
const ATTEMPT_MS = 10_000;
/** Attempts to deliver the end of a question; after that it is outdated. */
const LAST_WORDS = 5;

export function openWebhooks(deps: WebhookDeps): Closable {
  const { bridge, actor, recipients, log } = deps;
  const closing = new AbortController();
  /** One per open question: aborted when it is over, so that no recipient is sent a question that was answered. */
  const open = new Map<string, { readonly over: AbortController; readonly announced: readonly Promise<void>[] }>();

  /** The task's trace with its state and flags; if the task cannot be read, the known trace id. */
  async function traceFor(
    trace_id: string | null | undefined,
    taskId: string | null | undefined,
  ): Promise<TraceMembers> {
    const known = trace_id ? { trace_id } : undefined;
    if (!taskId) return known ?? {};
    try {
      return taskTrace(await bridge.view<Task & Row>(actor, 'task', taskId));
    } catch {
      return known ?? taskTrace({ id: taskId, metadata: {} });
    }
  }

  async function listen(): Promise<void> {
    const looking = look()
      // A second look finds questions that opened before following had begun.
      .then(() => deps.pause(FIRST_WAIT_MS, closing.signal))
      .then(look);
    looking.catch((cause) => {
      if (!closing.signal.aborted) log.error({ err: cause }, 'open questions could not be looked up');
    });
    const news = bridge.follow(actor, { stream: { of: 'all' }, after: 'now' }, closing.signal);
    for await (const happened of news) {
      const { event, payload } = happened;
      if (event === 'vendor.tollbridge.ask_opened') opened(payload.ask, happened.trace_id);
      if (event === 'vendor.tollbridge.ask_closed') closed(payload, happened);
      if (event === 'vendor.tollbridge.alarm') alarmed(happened);
    }
  }

  async function look(): Promise<void> {
    for await (const ask of openQuestions(bridge, actor)) opened(ask);
  }

  function opened(ask: AskRecord, traceId?: string | null): void {
    if (open.has(ask.id)) return;
    const over = new AbortController();
    const trace = traceFor(traceId, ask.task_id);
    const announced = recipients.map((recipient) => {
      const link = recipient.link?.(ask.id);
      const question = {
        type: 'approval.requested',
        timestamp: deps.clock.now(),
        data: { ...about(ask), ...(link && { decide_url: link }) },
      };
      const delivery = { id: `${ask.id}.requested`, body: JSON.stringify(question), trace };
      return deliver(recipient, delivery, over.signal, () => deps.clock.now() < ask.expires_at);
    });
    open.set(ask.id, { over, announced });
  }

  function closed({ ask_id, state, by, at, reason }: AskClosedPayload, { trace_id, task_id }: CoreEvent): void {
    const question = open.get(ask_id);
    question?.over.abort();
    open.delete(ask_id);
    const end = { type: 'approval.closed', timestamp: at, data: { id: ask_id, state, by, reason: reason ?? null } };
    const trace = traceFor(trace_id, task_id);
    const delivery = { id: `${ask_id}.closed`, body: JSON.stringify(end), trace };
    // A recipient gets the end after the question, also when the answer came at once.
    recipients.forEach(async (recipient, at) => {
      await question?.announced[at];
      deliver(recipient, delivery, closing.signal, (attempt) => attempt <= LAST_WORDS);
    });
  }

  /** No answer is expected, so delivery is tried a few times and the log keeps the alarm. */
  function alarmed(happened: CoreEvent): void {
    const { id, created_at, task_id, session_id, workspace_id, actor, payload } = happened;
    const trace = traceFor(happened.trace_id, task_id);
    const data = { ...payload, event_id: id, task_id, session_id, workspace_id, actor };
    const body = JSON.stringify({ type: 'alarm.raised', timestamp: created_at, data });
    for (const recipient of recipients) {
      deliver(recipient, { id: `${id}.alarm`, body, trace }, closing.signal, (attempt) => attempt <= LAST_WORDS);
    }
  }

  /** Resolves after the first attempt; later ones continue until it is accepted, outdated or over. */
  async function deliver(
    recipient: Recipient,
    delivery: Delivery,
    over: AbortSignal,
    worthIt: (attempt: number) => boolean,
  ): Promise<void> {
    if (!worthIt(1)) return;
    const trouble = await attemptAt(recipient, delivery, closing.signal);
    if (trouble) retry(recipient, delivery, trouble, anySignal([over, closing.signal]), worthIt);
  }

  async function retry(
    recipient: Recipient,
    delivery: Delivery,
    firstTrouble: string,
    signal: AbortSignal,
    worthIt: (attempt: number) => boolean,
  ): Promise<void> {
    let trouble: string | undefined = firstTrouble;
    let wait = FIRST_WAIT_MS;
    for (let attempt = 1; trouble && !signal.aborted; attempt += 1) {
      log.warn({ recipient: recipient.name, attempt, trouble }, 'a webhook was not delivered; it is tried again');
      await deps.pause(wait, signal).catch(() => {});
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
      if (signal.aborted || !worthIt(attempt + 1)) return;
      trouble = await attemptAt(recipient, delivery, signal);
    }
  }

  /** Returns the reason of a failure, or undefined. */
  async function attemptAt(
    { url, key }: Recipient,
    { id, body, trace }: Delivery,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const seconds = asText(Math.floor(Date.parse(deps.clock.now()) / 1000));
    const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
    try {
      const response = await (deps.fetch ?? fetch)(url, {
        method: 'POST',
        redirect: 'manual',
        body,
        headers: {
          ...outgoingTrace(await trace),
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': seconds,
          'webhook-signature': `v1,${signature}`,
        },
        signal: anySignal([signal, AbortSignal.timeout(ATTEMPT_MS)]),
      });
      await response.body?.cancel();
      return response.ok ? undefined : `it answered ${response.status}`;
    } catch (cause) {
      return cause instanceof Error ? cause.name : 'it could not be reached';
    }
  }

  listen().catch((cause) => {
    if (!closing.signal.aborted) log.error({ err: cause }, 'questions are no longer delivered to webhooks');
  });
  return {
    async close() {
      closing.abort();
    },
  };
}

/**
 * The content of a message. Messages leave this machine, so the act is redacted as in the log, and only a page that
 * shows it whole accepts an approval. `text` is for people, ready to be shown; everything else is exact data.
 */
function about(ask: AskRecord) {
  const { id, kind, action, reason, rule_id, task_id, session_id, workspace_id, created_at, expires_at } = ask;
  const question = visibleLine(ask.question);
  const { text, whole } = dialogText(ask);
  return {
    id,
    kind,
    question,
    text,
    shown: whole ? 'whole' : 'in_part',
    action,
    reason,
    rule_id,
    task_id,
    session_id,
    workspace_id,
    created_at,
    expires_at,
  };
}

/** Questions that are open now. */
export async function countOpenQuestions(bridge: Bridge, actor: Actor): Promise<number> {
  let count = 0;
  for await (const _ of openQuestions(bridge, actor)) count += 1;
  return count;
}

function openQuestions(bridge: Bridge, actor: Actor): AsyncIterable<Ask> {
  const open = { object: 'ask', where: { state: 'open' } };
  return everyRow((paging) => bridge.list<Ask>(actor, { ...open, ...paging }));
}
