/** One request to a server, made in an era that the server speaks and answered in the caller's. */
import type { JsonObject } from '../../../src/index.ts';
import type { Eras } from '../client/eras.ts';
import type { LegacyPeers } from '../client/legacy-peers.ts';
import { SessionRefused } from '../client/legacy-session.ts';
import type { ModernPeer } from '../client/modern-peer.ts';
import { type ResponseTimeout, unlessStopped } from '../client/timeout.ts';
import type { FrameOutcome } from '../frames.ts';
import type { McpRequestContext } from '../request-context.ts';
import type { LegacyTasks } from '../tasks/modern-as-legacy.ts';
import type { createModernView } from './legacy-as-modern.ts';
import type { LegacyView } from './modern-as-legacy.ts';

export type AskServer = (
  method: string,
  params: JsonObject,
  context: McpRequestContext,
  timeout: ResponseTimeout,
) => Promise<FrameOutcome>;

interface EitherEraDeps {
  readonly eras: Eras;
  readonly modern: ModernPeer;
  readonly legacy: LegacyPeers;
  /** A modern server for legacy callers, a legacy server for modern ones. */
  readonly view: LegacyView;
  readonly modernView: ReturnType<typeof createModernView>;
  readonly legacyTasks: LegacyTasks;
  /** A request that needs no conversion but that of a task. */
  readonly callModern: AskServer;
}

export function createEitherEra(deps: EitherEraDeps): AskServer {
  const { eras, modern, legacy, view, modernView, legacyTasks, callModern } = deps;

  /** A modern server, for a caller of either era. */
  const talkModern: AskServer = async (method, params, context, timeout) => {
    if (context.era === 'modern') return await modern.call(method, params, context, timeout);
    const own = await view.answer(method, params, context, timeout);
    const task = own ?? (await legacyTasks.answer(method, params, context, timeout));
    return task ?? (await callModern(method, params, context, timeout));
  };

  const talkLegacy: AskServer = async (method, params, context, timeout) => {
    const { session } = context;
    if (session && method === 'initialize') {
      return { result: (await legacy.open(session, params, context, timeout)).about };
    }
    if (session && method.startsWith('notifications/')) {
      await legacy.notify(session, { jsonrpc: '2.0', method, ...(Object.keys(params).length > 0 && { params }) });
      return { result: {} };
    }
    return await legacy.call(method, params, context, timeout);
  };

  return async (method, params, context, timeout) => {
    const found = eras.of(context);
    const era = found instanceof Promise ? await timeout.during(unlessStopped(found, timeout.signal)) : found;
    if (era === 'modern') return await talkModern(method, params, context, timeout);
    if (context.era === 'modern') return await modernView.answer(method, params, context, timeout);
    try {
      return await talkLegacy(method, params, context, timeout);
    } catch (thrown) {
      if (!(thrown instanceof SessionRefused)) throw thrown;
      if (await eras.refused(context)) return await talkModern(method, params, context, timeout);
      return thrown.outcome;
    }
  };
}
