/**
 * Questions told to people who are not looking: each one that opens, and how it ended, is sent to the addresses in the
 * configuration, signed, until it is taken or the question is over. At least once: after a restart what is still open
 * is sent again under the same id. Goes to configured addresses only, follows no redirect, and reads no answer but its status.
 */

import { createHmac } from 'node:crypto';
import type { Actor } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { AskRecord } from '../model/asks.ts';
import type { CoreEvent } from '../model/events.ts';
import type { AskClosedPayload, AskOpenedPayload } from '../model/payloads.ts';
import { visibleLine } from '../model/visible-text.ts';
import type { Bridge, Clock, Closable, Logger, Row } from '../ports.ts';
import { dialogText } from './question-text.ts';

export interface Recipient {
  readonly name: string;
  readonly url: string;
  /** The key messages are signed with. */
  readonly key: string;
  /** Where this recipient can answer a question; undefined when it is only to know of it. */
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
interface Told {
  readonly id: string;
  readonly body: string;
}

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 5 * 60_000;
const ATTEMPT_MS = 10_000;
/** How often it is tried to tell an end; then it is old news. */
const LAST_WORDS = 5;

export function openWebhooks(deps: WebhookDeps): Closable {
  const { bridge, actor, recipients, log } = deps;
  const closing = new AbortController();
  /** One per open question: aborted when it is over, so that nobody is asked what was answered. */
  const open = new Map<string, AbortController>();

  async function listen(): Promise<void> {
    const looking = look()
      // What opened while we were only beginning to listen is found by looking once more.
      .then(() => deps.pause(FIRST_WAIT_MS, closing.signal))
      .then(look);
    looking.catch((cause) => {
      if (!closing.signal.aborted) log.error({ err: cause }, 'open questions could not be looked up');
    });
    const news = bridge.follow(actor, { stream: { of: 'all' }, after: 'now' }, closing.signal);
    for await (const happened of news) {
      const { event, payload } = happened;
      if (event === 'vendor.tollbridge.ask_opened') opened((payload as unknown as AskOpenedPayload).ask);
      if (event === 'vendor.tollbridge.ask_closed') closed(payload as unknown as AskClosedPayload);
      if (event === 'vendor.tollbridge.alarm') alarmed(happened);
    }
  }

  async function look(): Promise<void> {
    let after: string | undefined;
    do {
      const where = { state: 'open' };
      const page = await bridge.list<Ask>(actor, { object: 'ask', where, limit: 200, ...(after && { after }) });
      for (const ask of page.data) opened(ask);
      after = page.next;
    } while (after);
  }

  function opened(ask: AskRecord): void {
    if (open.has(ask.id)) return;
    const over = new AbortController();
    open.set(ask.id, over);
    const signal = AbortSignal.any([over.signal, closing.signal]);
    for (const recipient of recipients) {
      const link = recipient.link?.(ask.id);
      const question = {
        type: 'approval.requested',
        timestamp: deps.clock.now(),
        data: { ...about(ask), ...(link && { decide_url: link }) },
      };
      const told = { id: `${ask.id}.requested`, body: JSON.stringify(question) };
      deliver(recipient, told, signal, () => deps.clock.now() < ask.expires_at);
    }
  }

  function closed({ ask_id, state, by, at, reason }: AskClosedPayload): void {
    open.get(ask_id)?.abort();
    open.delete(ask_id);
    const end = { type: 'approval.closed', timestamp: at, data: { id: ask_id, state, by, reason: reason ?? null } };
    for (const recipient of recipients) {
      const told = { id: `${ask_id}.closed`, body: JSON.stringify(end) };
      deliver(recipient, told, closing.signal, (attempt) => attempt <= LAST_WORDS);
    }
  }

  /** Nothing waits for an answer to it, so it is told a few times and then left to the log. */
  function alarmed({ id, created_at, task_id, session_id, workspace_id, actor, payload }: CoreEvent): void {
    const data = { ...payload, event_id: id, task_id, session_id, workspace_id, actor };
    const body = JSON.stringify({ type: 'alarm.raised', timestamp: created_at, data });
    for (const recipient of recipients) {
      deliver(recipient, { id: `${id}.alarm`, body }, closing.signal, (attempt) => attempt <= LAST_WORDS);
    }
  }

  async function deliver(
    recipient: Recipient,
    told: Told,
    signal: AbortSignal,
    worthIt: (attempt: number) => boolean,
  ): Promise<void> {
    let wait = FIRST_WAIT_MS;
    for (let attempt = 1; worthIt(attempt) && !signal.aborted; attempt += 1) {
      const trouble = await attemptAt(recipient, told, signal);
      if (!trouble || signal.aborted) return;
      log.warn({ recipient: recipient.name, attempt, trouble }, 'a webhook was not delivered; it is tried again');
      await deps.pause(wait, signal).catch(() => {});
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  /** What went wrong, if anything did. */
  async function attemptAt(
    { url, key }: Recipient,
    { id, body }: Told,
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
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': seconds,
          'webhook-signature': `v1,${signature}`,
        },
        signal: AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_MS)]),
      });
      await response.body?.cancel();
      return response.ok ? undefined : `it answered ${response.status}`;
    } catch (cause) {
      return cause instanceof Error ? cause.name : 'it could not be reached';
    }
  }

  listen().catch((cause) => {
    if (!closing.signal.aborted) log.error({ err: cause }, 'questions are no longer told to anyone');
  });
  return {
    async close() {
      closing.abort();
    },
  };
}

/**
 * What a person needs to look at it. Messages leave this machine, so the act is as redacted as in the log, and nothing but a page
 * that shows it whole takes a yes. `text` is for people, ready to be shown; everything else is data, and exact.
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
