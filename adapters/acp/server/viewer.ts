/**
 * One session as one client sees it: the past, if requested, then live events, with the questions and the results of its own
 * prompts in order between them. Reads only the log.
 */
import {
  type Actor,
  type AskRecord,
  asText,
  type Bridge,
  type CoreEvent,
  type Cursor,
  type Failure,
  isTerminal,
  type JsonObject,
  type Logger,
  LruMap,
  type Row,
  type Stream,
} from '../../../src/index.ts';
import type { Peer } from '../../../src/transport/json-rpc/peer.ts';
import { objectOf, within } from '../shapes.ts';
import { OURS, withMeta } from '../translate.ts';
import type { ClientProfile } from './client-profile.ts';
import { fetchArtifact } from './fetch-artifact.ts';
import { createQuestions } from './questions.ts';
import { createEventRenderer, type RenderedFrame } from './render-events.ts';

export interface ViewerDeps {
  readonly bridge: Bridge;
  readonly actor: Actor;
  readonly peer: Peer;
  readonly client: ClientProfile;
  readonly sessionId: string;
  readonly log: Logger;
  /** Members beside the envelope, for transports that add some. */
  stamp?(at: { eventId: string; sessionId: string; replayed: boolean }): JsonObject;
}

/** The result of a prompt, or the question it waits for. */
export type PromptOutcome =
  | {
      readonly kind: 'ended';
      readonly taskId: string;
      readonly state: string;
      readonly failure: Failure | undefined;
      readonly receiptId: string | undefined;
    }
  | { readonly kind: 'waiting'; readonly taskId: string; readonly ask: AskRecord };

export interface Viewer {
  readonly sessionId: string;
  /** Chosen by this client for its tasks; undefined leaves it to the session. */
  persona: string | undefined;
  agent: string | undefined;
  /** Renders the past, whole or after a cursor. */
  replay(after?: Cursor): Promise<void>;
  /** Renders nothing of the past but the open questions. */
  join(): Promise<void>;
  /** Renders live events from here on. */
  follow(from?: 'now'): void;
  /** Holds back events until the task is submitted: a client's own prompt is not sent back to it. */
  give(submit: () => Promise<string>): Promise<string>;
  /** Resolves in order with the updates sent before it. */
  outcome(taskId: string): Promise<PromptOutcome>;
  /** Unfinished tasks of this client. */
  readonly open: ReadonlySet<string>;
  canceling: boolean;
  /** The question asked as text, which the next prompt answers. */
  takeAsked(): AskRecord | undefined;
  say(text: string, messageId: string): Promise<void>;
  close(): void;
}

const MOST_REMEMBERED = 200;

export function createViewer(deps: ViewerDeps): Viewer {
  const { bridge, actor, peer, client, sessionId, log } = deps;
  const gone = new AbortController();
  const own = new Set<string>();
  const open = new Set<string>();
  const ended = new LruMap<string, PromptOutcome>(MOST_REMEMBERED);
  const waiting = new Map<string, (outcome: PromptOutcome) => void>();
  let giving: Promise<unknown> = Promise.resolve();
  let cursor: Cursor | undefined;
  let asked: AskRecord | undefined;

  const artifact = (id: string) => fetchArtifact(bridge, actor, id);
  const renderer = createEventRenderer({ client, own: (taskId) => own.has(taskId), artifact });
  const viewer: Viewer = {
    sessionId,
    persona: undefined,
    agent: undefined,
    open,
    canceling: false,

    async replay(after) {
      const stream = { of: 'session', id: sessionId } as const;
      const removed = new Set<string>();
      for await (const { payload } of bridge.events(actor, { stream, kinds: ['session.truncated'] })) {
        for (const id of (payload.removed ?? []) as readonly string[]) removed.add(id);
      }
      if (after) await recall(stream, after);
      for await (const event of bridge.events(actor, { stream, ...(after && { after }) })) {
        cursor = event.id;
        const message = within(event.payload, 'message', 'id') ?? event.payload.message_id;
        if (!removed.has(asText(message))) await show(event, after ? 'again' : 'replay');
      }
      for (const frame of renderer.catchUp()) await send(frame, undefined, true);
    },

    async join() {
      const where = { session_id: sessionId, state: 'open' };
      const { data } = await bridge.list<AskRecord & Row>(actor, { object: 'ask', where, limit: 50 });
      for (const ask of data) questions.known(ask);
    },

    follow(from) {
      questions.raise();
      const after = cursor ?? from;
      const start = { stream: { of: 'session', id: sessionId } as const, ...(after && { after }) };
      (async () => {
        for await (const event of bridge.follow(actor, start, gone.signal)) {
          await giving;
          cursor = event.id;
          await show(event, 'live');
        }
      })().catch((cause) => {
        if (!gone.signal.aborted) log.error({ err: cause, session: sessionId }, 'a session can no longer be followed');
        for (const [taskId, settle] of waiting) settle(lost(taskId));
      });
    },

    async give(submit) {
      const submitted = submit();
      giving = submitted.catch(() => {});
      const taskId = await submitted;
      own.add(taskId);
      if (!ended.has(taskId)) open.add(taskId);
      return taskId;
    },

    outcome(taskId) {
      const known = ended.get(taskId);
      if (known) return Promise.resolve(known);
      if (gone.signal.aborted) return Promise.resolve(lost(taskId));
      return new Promise((resolve) => waiting.set(taskId, resolve));
    },

    takeAsked() {
      const ask = asked;
      asked = undefined;
      return ask;
    },

    async say(text, messageId) {
      const content = { type: 'text', text };
      await send({ update: { sessionUpdate: 'agent_message_chunk', messageId, content } }, undefined, false);
    },

    close() {
      gone.abort();
      questions.close();
      for (const [taskId, settle] of waiting) settle(lost(taskId));
      waiting.clear();
    },
  };

  const questions = createQuestions({
    ...deps,
    canceling: () => viewer.canceling,
    sendUpdate(update) {
      send({ update }, undefined, false).catch((cause) => log.warn({ err: cause }, 'a question could not be shown'));
    },
    askInWords(ask) {
      asked = ask;
      viewer
        .say(`${ask.question}\n`, `${ask.task_id}.ask.${ask.id}`)
        .then(() => settle(ask.task_id, { kind: 'waiting', taskId: ask.task_id, ask }))
        .catch((cause) => log.warn({ err: cause }, 'a question could not be shown'));
    },
  });

  function settle(taskId: string, outcome: PromptOutcome): void {
    const waiter = waiting.get(taskId);
    waiting.delete(taskId);
    waiter?.(outcome);
  }

  /** A returning client has seen the events before its cursor: they are processed without output. */
  async function recall(stream: Stream, upTo: Cursor): Promise<void> {
    for await (const event of bridge.events(actor, { stream, upTo })) {
      if (event.replayed) continue;
      await renderer.render(event);
      questions.see(event, true);
    }
    cursor = upTo;
  }

  /** `again`: streamed as it was live, for a client that missed it; `replay`: whole, in its final form. */
  async function show(event: CoreEvent, how: 'live' | 'again' | 'replay'): Promise<void> {
    // A replay of a task repeats its events; watchers of the session saw them the first time.
    if (event.replayed) return;
    const replay = how !== 'live';
    for (const frame of await renderer.render(event, how === 'replay')) await send(frame, event, replay);
    questions.see(event, replay);
    if (event.event === 'vendor.tollbridge.ask_closed' && asked?.id === event.payload.ask_id) asked = undefined;
    if (!replay && event.event.startsWith('task.') && isTerminal(asText(event.payload.to))) end(event);
  }

  function end({ task_id, payload }: CoreEvent): void {
    const taskId = task_id ?? '';
    const task = objectOf(payload.task) ?? {};
    const outcome: PromptOutcome = {
      kind: 'ended',
      taskId,
      state: asText(payload.to),
      failure: objectOf(task.failure) as Failure | undefined,
      receiptId: (within(payload, 'outcome', 'receipt_id') as string | null | undefined) ?? undefined,
    };
    open.delete(taskId);
    ended.set(taskId, outcome);
    settle(taskId, outcome);
  }

  async function send(frame: RenderedFrame, event: CoreEvent | undefined, replayed: boolean): Promise<void> {
    if ('method' in frame) {
      const params = { sessionId, ...frame.params, ...(replayed && { replayed: true }) };
      return await peer.notify(frame.method, params, stampOf(event, replayed));
    }
    let update = frame.update;
    if (replayed) update = withMeta(update, OURS, { replayed: true });
    if (replayed && client.harn) update = withMeta(update, 'harn', { replayed: true });
    const params: JsonObject = { sessionId, update };
    const placed = client.ours && event ? withMeta(params, OURS, { eventId: event.id }) : params;
    await peer.notify('session/update', placed, stampOf(event, replayed));
  }

  function stampOf(event: CoreEvent | undefined, replayed: boolean): JsonObject {
    return event && deps.stamp ? deps.stamp({ eventId: event.id, sessionId, replayed }) : {};
  }

  return viewer;
}

/** The connection was closed: the prompt gets no result, and the work continues. */
function lost(taskId: string): PromptOutcome {
  const failure = { code: 'unavailable', message: 'the session can no longer be followed' };
  return { kind: 'ended', taskId, state: 'FAILED', failure, receiptId: undefined };
}
