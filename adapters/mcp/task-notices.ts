/**
 * How a task goes on, told to a client of 2025-11-25 as its server tells it. There a server tells whoever began the task without
 * being asked; by the extension somebody has to listen, which is done here for as long as a session has tasks under way.
 */
import type { Json, JsonObject } from '../../src/index.ts';
import { type Notice, notice, type Outcome } from './frames.ts';
import type { McpLine, SessionLine } from './line.ts';
import { createPatience, type Patience } from './patience.ts';
import { OVER, toLegacyState } from './task-words.ts';

export interface TaskNotices {
  /** The caller's session wants to hear of it. */
  follow(taskId: string, line: McpLine): void;
}

type Ask = (method: string, params: JsonObject, line: McpLine, patience: Patience) => Promise<Outcome>;

interface Listening {
  readonly taskIds: Set<Json>;
  stop: AbortController;
}

/** What a session may have under way and still be told of; the oldest is let go. */
const MOST_FOLLOWED = 100;
const FOREVER_MS = 2 ** 31 - 1;

export function createTaskNotices(ask: Ask): TaskNotices {
  const sessions = new WeakMap<SessionLine, Listening>();

  /** One stream for all of a session's tasks; another one more is a new stream. */
  function listen(mine: Listening, line: McpLine, session: SessionLine): void {
    mine.stop.abort();
    mine.stop = new AbortController();
    if (mine.taskIds.size === 0) return;
    const patience = createPatience(AbortSignal.any([mine.stop.signal, session.ended]), FOREVER_MS, FOREVER_MS);
    const hearing: McpLine = { ...line, notify: (heard) => hear(heard, mine, session) };
    ask('subscriptions/listen', { notifications: { taskIds: [...mine.taskIds] } }, hearing, patience)
      .catch(() => {})
      .finally(() => patience.end());
  }

  function hear({ method, params }: Notice, mine: Listening, session: SessionLine): void {
    if (method !== 'notifications/tasks' || !params || !mine.taskIds.has(params.taskId ?? null)) return;
    session.hear(notice('notifications/tasks/status', toLegacyState(params)));
    if (!OVER.includes(params.status)) return;
    mine.taskIds.delete(params.taskId ?? null);
    if (mine.taskIds.size === 0) mine.stop.abort();
  }

  return {
    follow(taskId, line) {
      const { session } = line;
      if (!session || session.ended.aborted) return;
      const mine = sessions.get(session) ?? { taskIds: new Set<Json>(), stop: new AbortController() };
      sessions.set(session, mine);
      mine.taskIds.add(taskId);
      if (mine.taskIds.size > MOST_FOLLOWED) mine.taskIds.delete(mine.taskIds.values().next().value as Json);
      listen(mine, line, session);
    },
  };
}
