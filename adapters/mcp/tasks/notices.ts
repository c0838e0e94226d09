/**
 * Forwards a server's status notifications for tasks to clients of 2025-11-25. There a server sends them without being asked; by the
 * extension a client has to listen, so this listens for as long as a session has tasks under way.
 */
import { anySignal, type Json, type JsonObject } from '../../../src/index.ts';
import { createResponseTimeout, type ResponseTimeout } from '../client/timeout.ts';
import { type FrameOutcome, type Notice, notice } from '../frames.ts';
import type { McpRequestContext, SessionContext } from '../request-context.ts';
import { OVER, toLegacyState } from './words.ts';

export interface TaskNotices {
  /** Sends notifications about this task to the caller's session. */
  follow(taskId: string, context: McpRequestContext): void;
}

type Ask = (
  method: string,
  params: JsonObject,
  context: McpRequestContext,
  timeout: ResponseTimeout,
) => Promise<FrameOutcome>;

interface Listening {
  readonly taskIds: Set<Json>;
  stop: AbortController;
}

/** How many tasks of a session are followed; beyond that the oldest is dropped. */
const MOST_FOLLOWED = 100;
const FOREVER_MS = 2 ** 31 - 1;

export function createTaskNotices(ask: Ask): TaskNotices {
  const sessions = new WeakMap<SessionContext, Listening>();

  /** One stream for all tasks of a session; one more task opens a new stream. */
  function listen(mine: Listening, context: McpRequestContext, session: SessionContext): void {
    mine.stop.abort();
    mine.stop = new AbortController();
    if (mine.taskIds.size === 0) return;
    const timeout = createResponseTimeout(anySignal([mine.stop.signal, session.ended]), FOREVER_MS, FOREVER_MS);
    const hearing: McpRequestContext = { ...context, notify: (notice) => receive(notice, mine, session) };
    ask('subscriptions/listen', { notifications: { taskIds: [...mine.taskIds] } }, hearing, timeout)
      .catch(() => {})
      .finally(() => timeout.end());
  }

  function receive({ method, params }: Notice, mine: Listening, session: SessionContext): void {
    if (method !== 'notifications/tasks' || !params || !mine.taskIds.has(params.taskId ?? null)) return;
    session.notify(notice('notifications/tasks/status', toLegacyState(params)));
    if (!OVER.includes(params.status)) return;
    mine.taskIds.delete(params.taskId ?? null);
    if (mine.taskIds.size === 0) mine.stop.abort();
  }

  return {
    follow(taskId, context) {
      const { session } = context;
      if (!session || session.ended.aborted) return;
      const mine = sessions.get(session) ?? { taskIds: new Set<Json>(), stop: new AbortController() };
      sessions.set(session, mine);
      mine.taskIds.add(taskId);
      if (mine.taskIds.size > MOST_FOLLOWED) mine.taskIds.delete(mine.taskIds.values().next().value as Json);
      listen(mine, context, session);
    },
  };
}
