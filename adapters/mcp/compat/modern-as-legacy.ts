/**
 * A modern server as a client of the legacy era sees it: with a session, a log level and subscriptions. The server has none of
 * these; they are emulated by a level in each envelope and one listening request per session.
 */

import { CHANGES, META, MODERN } from '../../../mappings/mcp.ts';
import { anySignal, asText, isObject, type Json, type JsonObject } from '../../../src/index.ts';
import type { ModernPeer } from '../client/modern-peer.ts';
import { createResponseTimeout, type ResponseTimeout } from '../client/timeout.ts';
import { type FrameOutcome, type Notice, notice } from '../frames.ts';
import type { McpRequestContext, SessionContext } from '../request-context.ts';
import { knowsTasks } from '../tasks/words.ts';
import { toInitializeResult } from './convert.ts';

export interface LegacyView {
  /** Undefined when the server itself is to answer. */
  answer(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome | undefined>;
  level(context: McpRequestContext): string | undefined;
  /** Whether calls of this session can be tasks: as declared when it began, or as the server declares to callers without a session. */
  tasks(context: McpRequestContext, timeout: ResponseTimeout): Promise<boolean>;
  /** Whether calls can be tasks of the extension, by the server's last description of itself. */
  supportsTasks(context: McpRequestContext, timeout: ResponseTimeout): Promise<boolean>;
  /** The server's answer, with the members that this era adds. */
  shown(method: string, outcome: FrameOutcome, context: McpRequestContext): FrameOutcome;
}

interface State {
  level: string | undefined;
  /** Undefined where another address declared it. */
  readonly tasks: boolean | undefined;
  readonly uris: Set<string>;
  readonly wishes: JsonObject;
  listening: AbortController | undefined;
}

export function createLegacyView(peer: () => ModernPeer): LegacyView {
  const states = new WeakMap<SessionContext, State>();

  /** The server's last declaration about tasks, and when it expires. */
  let support: { readonly tasks: boolean; readonly until: number } | undefined;

  async function discover(context: McpRequestContext, timeout: ResponseTimeout): Promise<FrameOutcome> {
    const meta = { [META.version]: MODERN, [META.capabilities]: {}, [META.client]: context.client };
    const outcome = await peer().call('server/discover', { _meta: meta }, { ...context, era: 'modern' }, timeout);
    if ('error' in outcome) return outcome;
    const { capabilities } = outcome.result;
    support = { tasks: isObject(capabilities) && knowsTasks(capabilities), until: performance.now() + BELIEVED_MS };
    return outcome;
  }

  async function supportsTasks(context: McpRequestContext, timeout: ResponseTimeout): Promise<boolean> {
    if (!support || performance.now() > support.until) await discover(context, timeout);
    return support?.tasks ?? false;
  }

  /** A session that was opened at the common address sent no `initialize` here. */
  function stateOf(session: SessionContext): State {
    const state = states.get(session) ?? { ...stateFor({}), tasks: undefined };
    states.set(session, state);
    return state;
  }

  async function initialize(
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const outcome = await discover(context, timeout);
    if ('error' in outcome) return outcome;
    const result = toInitializeResult(outcome.result, params.protocolVersion);
    if (context.session) states.set(context.session, stateFor(result));
    return { result };
  }

  /** One stream for everything this session subscribed to; a changed subscription opens a new stream. */
  function listen(context: McpRequestContext, state: State): void {
    const { session } = context;
    if (!session || (Object.keys(state.wishes).length === 0 && state.uris.size === 0)) return;
    state.listening?.abort();
    const stop = new AbortController();
    state.listening = stop;
    const over = anySignal([stop.signal, session.ended]);
    const wishes = { ...state.wishes, ...(state.uris.size > 0 && { resourceSubscriptions: [...state.uris] }) };
    const asking: McpRequestContext = {
      ...context,
      notify(notice) {
        if (notice.method !== 'notifications/subscriptions/acknowledged') session.notify(notice);
      },
    };
    const timeout = createResponseTimeout(over, FOREVER, FOREVER);
    peer()
      .call('subscriptions/listen', { notifications: wishes }, asking, timeout)
      .catch(() => {})
      .finally(() => timeout.end());
  }

  const tasksOf = ({ session }: McpRequestContext) => session && states.get(session)?.tasks;

  return {
    level: ({ session }) => session && states.get(session)?.level,
    tasks: async (context, timeout) => tasksOf(context) ?? (await supportsTasks(context, timeout)),
    supportsTasks,
    shown(method, outcome, context) {
      if (method !== 'tools/list' || 'error' in outcome || !tasksOf(context)) return outcome;
      const { tools } = outcome.result;
      return Array.isArray(tools) ? { result: { ...outcome.result, tools: tools.map(mayBeTask) } } : outcome;
    },
    async answer(method, params, context, timeout) {
      const state = context.session && stateOf(context.session);
      switch (method) {
        case 'initialize':
          return await initialize(params, context, timeout);
        case 'notifications/initialized':
          if (state) listen(context, state);
          return EMPTY;
        case 'logging/setLevel':
          if (state) state.level = asText(params.level);
          return EMPTY;
        case 'resources/subscribe':
          state?.uris.add(asText(params.uri));
          if (state) listen(context, state);
          return EMPTY;
        case 'resources/unsubscribe':
          state?.uris.delete(asText(params.uri));
          if (state) listen(context, state);
          return EMPTY;
        default:
          return method.startsWith('notifications/') ? EMPTY : undefined;
      }
    },
  };
}

const EMPTY: FrameOutcome = { result: {} };
const FOREVER = 2 ** 31 - 1;
const BELIEVED_MS = 10 * 60_000;

/** The server declares task support for itself and not by tool: every caller that asks for a task gets one. */
function mayBeTask(tool: Json): Json {
  return isObject(tool) ? { ...tool, execution: { taskSupport: 'optional' } } : tool;
}

/** Subscribes to the lists that the server says may change. */
function stateFor({ capabilities }: JsonObject): State {
  const declared = isObject(capabilities) ? capabilities : {};
  const wishes = Object.fromEntries(
    CHANGES.flatMap(({ wire, wish }) => {
      const capability = declared[wire.split('/')[1] as string];
      return isObject(capability) && capability.listChanged === true ? [[wish, true]] : [];
    }),
  );
  return { level: undefined, tasks: declared.tasks !== undefined, uris: new Set(), wishes, listening: undefined };
}

/** Notifications that a legacy server sends to all clients, for one that listens in the modern era. */
export function listenTo(
  changes: (listener: (notice: Notice) => void) => () => void,
  params: JsonObject,
  context: McpRequestContext,
  signal: AbortSignal,
): Promise<FrameOutcome> {
  const wishes = isObject(params.notifications) ? params.notifications : {};
  const uris = Array.isArray(wishes.resourceSubscriptions) ? wishes.resourceSubscriptions : [];
  const mark = { [META.subscription]: context.id };
  const granted = Object.fromEntries(
    Object.entries(wishes).filter(
      ([wish]) => wish === 'resourceSubscriptions' || CHANGES.some((row) => row.wish === wish),
    ),
  );
  context.notify(notice('notifications/subscriptions/acknowledged', { notifications: granted, _meta: mark }));
  const stop = changes((notice) => {
    const row = CHANGES.find(({ wire }) => wire === notice.method);
    const wants = row ? wishes[row.wish] === true : uris.includes(notice.params?.uri ?? null);
    if (!wants) return;
    const meta = isObject(notice.params?._meta) ? notice.params._meta : {};
    context.notify({ ...notice, params: { ...notice.params, _meta: { ...meta, ...mark } } });
  });
  return new Promise((resolve) => {
    const over = () => {
      stop();
      resolve({ result: { resultType: 'complete', _meta: mark } });
    };
    if (signal.aborted) over();
    else signal.addEventListener('abort', over, { once: true });
  });
}
