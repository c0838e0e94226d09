/**
 * What a server says to a session of the common address, in the common address's words: resources under the names they have
 * there, and nothing of lists that changed, which is for this address itself to say. One for each session and server, and the
 * same one every time: a server's session is found by it.
 */
import type { Caller } from './caller.ts';
import { askedWithTask, noticeWithTask } from './common-tasks.ts';
import type { Notice } from './frames.ts';
import type { SessionLine } from './line.ts';
import { exposedUri } from './names.ts';

export interface CommonSessions {
  /** The caller as the desk of this server gets to know it. */
  at<C extends Caller>(server: string, caller: C): C;
  /** Servers this session has been at. */
  visited(session: SessionLine): readonly string[];
}

export function createCommonSessions(): CommonSessions {
  const sessions = new WeakMap<SessionLine, Map<string, SessionLine>>();

  function lineAt(server: string, session: SessionLine): SessionLine {
    const lines = sessions.get(session) ?? new Map<string, SessionLine>();
    sessions.set(session, lines);
    const line = lines.get(server) ?? {
      ...session,
      hear(said: Notice) {
        const heard = inCommon(server, said);
        if (heard) session.hear(heard);
      },
    };
    lines.set(server, line);
    return line;
  }

  return {
    at(server, caller) {
      const notify = (said: Notice) => {
        const heard = inCommon(server, said);
        if (heard) caller.notify(heard);
      };
      const session = caller.session && { session: lineAt(server, caller.session) };
      return askedWithTask(server, { ...caller, notify, ...session });
    },
    visited: (session) => [...(sessions.get(session)?.keys() ?? [])],
  };
}

/** Undefined for what is not this server's to say here. */
function inCommon(server: string, said: Notice): Notice | undefined {
  if (said.method.endsWith('/list_changed')) return undefined;
  const { uri } = said.params ?? {};
  if (said.method !== 'notifications/resources/updated' || typeof uri !== 'string') return noticeWithTask(server, said);
  return { ...said, params: { ...said.params, uri: exposedUri(server, uri) } };
}
