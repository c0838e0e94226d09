/**
 * Renames a server's notifications for a session of the common address: resources get the names they have there, and list changes
 * are dropped, because the address announces those itself. Each session and server has one context, and always the same object:
 * upstream sessions are looked up by it.
 */

import type { Notice } from '../../frames.ts';
import type { SessionContext } from '../../request-context.ts';
import type { Caller } from '../caller.ts';
import { exposedUri } from './names.ts';
import { askedWithTask, noticeWithTask } from './tasks.ts';

export interface CommonSessions {
  /** The caller as the endpoint of this server sees it. */
  at<C extends Caller>(server: string, caller: C): C;
  /** The servers this session has used. */
  visited(session: SessionContext): readonly string[];
}

export function createCommonSessions(): CommonSessions {
  const sessions = new WeakMap<SessionContext, Map<string, SessionContext>>();

  function contextAt(server: string, session: SessionContext): SessionContext {
    const contexts = sessions.get(session) ?? new Map<string, SessionContext>();
    sessions.set(session, contexts);
    const context = contexts.get(server) ?? {
      ...session,
      notify(said: Notice) {
        const notice = inCommon(server, said);
        if (notice) session.notify(notice);
      },
    };
    contexts.set(server, context);
    return context;
  }

  return {
    at(server, caller) {
      const notify = (said: Notice) => {
        const notice = inCommon(server, said);
        if (notice) caller.notify(notice);
      };
      const session = caller.session && { session: contextAt(server, caller.session) };
      return askedWithTask(server, { ...caller, notify, ...session });
    },
    visited: (session) => [...(sessions.get(session)?.keys() ?? [])],
  };
}

/** Undefined for notifications that the server may not send here. */
function inCommon(server: string, said: Notice): Notice | undefined {
  if (said.method.endsWith('/list_changed')) return undefined;
  const { uri } = said.params ?? {};
  if (said.method !== 'notifications/resources/updated' || typeof uri !== 'string') return noticeWithTask(server, said);
  return { ...said, params: { ...said.params, uri: exposedUri(server, uri) } };
}
