/** A legacy server, for callers of the modern era: each request is made in its session, and the answer is converted. */
import { isObject, type JsonObject } from '../../../src/index.ts';
import type { LegacyPeers } from '../client/legacy-peers.ts';
import type { ResponseTimeout } from '../client/timeout.ts';
import { type FrameOutcome, metaOf } from '../frames.ts';
import type { McpRequestContext } from '../request-context.ts';
import type { TaskEras } from '../tasks/legacy-as-modern.ts';
import { toDiscoverResult, toModernOutcome, wantedCapabilities } from './convert.ts';
import { listenTo } from './modern-as-legacy.ts';

interface ModernViewDeps {
  readonly legacy: LegacyPeers;
  readonly tasks: TaskEras;
  /** Gets every outcome as the server sent it, before it is converted. */
  observe(method: string, params: JsonObject, outcome: FrameOutcome, context: McpRequestContext): void;
}

export function createModernView({ legacy, tasks, observe }: ModernViewDeps) {
  async function answer(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const session = await legacy.of(context, timeout);
    if (method === 'server/discover') return { result: toDiscoverResult(session.about) };
    if (method === 'subscriptions/listen') {
      const { resourceSubscriptions: uris } = isObject(params.notifications) ? params.notifications : {};
      for (const uri of Array.isArray(uris) ? uris : []) {
        await legacy.call('resources/subscribe', { uri }, context, timeout);
      }
      return await listenTo((notify) => session.onChange(notify), params, context, timeout.signal);
    }
    const meta = metaOf(params);
    const filtered: McpRequestContext = {
      ...context,
      notify: (notice) => wantedCapabilities(notice, meta) && context.notify(notice),
    };
    const task = await tasks.answer(
      method,
      { ...plain(params), ...answersIn(params) },
      filtered,
      timeout,
      session.about,
    );
    if (task) return task;
    const outcome = await legacy.call(method, plain(params), filtered, timeout);
    observe(method, params, outcome, context);
    return toModernOutcome(method, outcome, session.about);
  }

  return { answer };
}

/** Only requests about a task carry answers in this member. */
function answersIn({ taskId, inputResponses }: JsonObject): JsonObject {
  return taskId !== undefined && inputResponses !== undefined ? { inputResponses } : {};
}

/** The params without members that only the modern era has. */
function plain(params: JsonObject): JsonObject {
  const { inputResponses: _i, requestState: _r, _meta, ...rest } = params;
  const meta = Object.fromEntries(
    Object.entries(isObject(_meta) ? _meta : {}).filter(([key]) => !key.startsWith('io.modelcontextprotocol/')),
  );
  return Object.keys(meta).length > 0 ? { ...rest, _meta: meta } : rest;
}
