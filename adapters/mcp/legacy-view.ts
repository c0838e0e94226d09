/**
 * A modern server as a client of the legacy era knows it: with a session, a log level and subscriptions. The server has
 * none of these; what stands for them here is a level in each envelope and one listening request per session.
 */

import { CHANGES, META, MODERN } from '../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import type { StopSignal } from '../../src/wire/stop.ts';
import { toInitializeResult } from './eras.ts';
import { isObject, type Notice, notice, type Outcome } from './frames.ts';
import type { McpLine, SessionLine } from './line.ts';
import type { ModernPeer } from './modern-peer.ts';
import { createPatience, type Patience } from './patience.ts';
import { knowsTasks } from './task-words.ts';

export interface LegacyView {
  /** Undefined when the server itself is to answer. */
  answer(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome | undefined>;
  level(line: McpLine): string | undefined;
  /** Whether calls of this session can be tasks here: what it was told when it began, or what the server says to those who never asked. */
  tasks(line: McpLine, patience: Patience): Promise<boolean>;
  /** Whether calls can be tasks of the extension, by what the server last said of itself. */
  offersTasks(line: McpLine, patience: Patience): Promise<boolean>;
  /** The server's answer, with what this era says beside it. */
  shown(method: string, outcome: Outcome, line: McpLine): Outcome;
}

interface State {
  level: string | undefined;
  /** Undefined where it was told somewhere else. */
  readonly tasks: boolean | undefined;
  readonly uris: Set<string>;
  readonly wishes: JsonObject;
  listening: AbortController | undefined;
}

export function createLegacyView(peer: () => ModernPeer): LegacyView {
  const states = new WeakMap<SessionLine, State>();

  /** What the server said of tasks, and until when it is believed. */
  let offers: { readonly tasks: boolean; readonly until: number } | undefined;

  async function discover(line: McpLine, patience: Patience): Promise<Outcome> {
    const meta = { [META.version]: MODERN, [META.capabilities]: {}, [META.client]: line.client };
    const outcome = await peer().call('server/discover', { _meta: meta }, { ...line, era: 'modern' }, patience);
    if ('error' in outcome) return outcome;
    const { capabilities } = outcome.result;
    offers = { tasks: isObject(capabilities) && knowsTasks(capabilities), until: performance.now() + BELIEVED_MS };
    return outcome;
  }

  async function offersTasks(line: McpLine, patience: Patience): Promise<boolean> {
    if (!offers || performance.now() > offers.until) await discover(line, patience);
    return offers?.tasks ?? false;
  }

  /** A session that was opened at the common address never said so here. */
  function stateOf(session: SessionLine): State {
    const state = states.get(session) ?? { ...stateFor({}), tasks: undefined };
    states.set(session, state);
    return state;
  }

  async function initialize(params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const outcome = await discover(line, patience);
    if ('error' in outcome) return outcome;
    const result = toInitializeResult(outcome.result, params.protocolVersion);
    if (line.session) states.set(line.session, stateFor(result));
    return { result };
  }

  /** One stream for everything this session wants to hear; changed wishes are a new stream. */
  function listen(line: McpLine, state: State): void {
    const { session } = line;
    if (!session || (Object.keys(state.wishes).length === 0 && state.uris.size === 0)) return;
    state.listening?.abort();
    const stop = new AbortController();
    state.listening = stop;
    const over = AbortSignal.any([stop.signal, session.ended]);
    const wishes = { ...state.wishes, ...(state.uris.size > 0 && { resourceSubscriptions: [...state.uris] }) };
    const asking: McpLine = {
      ...line,
      notify(heard) {
        if (heard.method !== 'notifications/subscriptions/acknowledged') session.hear(heard);
      },
    };
    const patience = createPatience(over, FOREVER, FOREVER);
    peer()
      .call('subscriptions/listen', { notifications: wishes }, asking, patience)
      .catch(() => {})
      .finally(() => patience.end());
  }

  const told = ({ session }: McpLine) => session && states.get(session)?.tasks;

  return {
    level: ({ session }) => session && states.get(session)?.level,
    tasks: async (line, patience) => told(line) ?? (await offersTasks(line, patience)),
    offersTasks,
    shown(method, outcome, line) {
      if (method !== 'tools/list' || 'error' in outcome || !told(line)) return outcome;
      const { tools } = outcome.result;
      return Array.isArray(tools) ? { result: { ...outcome.result, tools: tools.map(mayBeTask) } } : outcome;
    },
    async answer(method, params, line, patience) {
      const state = line.session && stateOf(line.session);
      switch (method) {
        case 'initialize':
          return await initialize(params, line, patience);
        case 'notifications/initialized':
          if (state) listen(line, state);
          return EMPTY;
        case 'logging/setLevel':
          if (state) state.level = asText(params.level);
          return EMPTY;
        case 'resources/subscribe':
          state?.uris.add(asText(params.uri));
          if (state) listen(line, state);
          return EMPTY;
        case 'resources/unsubscribe':
          state?.uris.delete(asText(params.uri));
          if (state) listen(line, state);
          return EMPTY;
        default:
          return method.startsWith('notifications/') ? EMPTY : undefined;
      }
    },
  };
}

const EMPTY: Outcome = { result: {} };
const FOREVER = 2 ** 31 - 1;
const BELIEVED_MS = 10 * 60_000;

/** The server says of no tool in particular that its calls are tasks: whoever asks for one gets one. */
function mayBeTask(tool: Json): Json {
  return isObject(tool) ? { ...tool, execution: { taskSupport: 'optional' } } : tool;
}

/** Lists the server says may change are listened for. */
function stateFor({ capabilities }: JsonObject): State {
  const offers = isObject(capabilities) ? capabilities : {};
  const wishes = Object.fromEntries(
    CHANGES.flatMap(({ wire, wish }) => {
      const offer = offers[wire.split('/')[1] as string];
      return isObject(offer) && offer.listChanged === true ? [[wish, true]] : [];
    }),
  );
  return { level: undefined, tasks: offers.tasks !== undefined, uris: new Set(), wishes, listening: undefined };
}

/** What a server of the legacy era tells everyone, as someone listens to it in the modern era. */
export function listenTo(
  changes: (heard: (notice: Notice) => void) => () => void,
  params: JsonObject,
  line: McpLine,
  signal: StopSignal,
): Promise<Outcome> {
  const wishes = isObject(params.notifications) ? params.notifications : {};
  const uris = Array.isArray(wishes.resourceSubscriptions) ? wishes.resourceSubscriptions : [];
  const mark = { [META.subscription]: line.id };
  const granted = Object.fromEntries(
    Object.entries(wishes).filter(
      ([wish]) => wish === 'resourceSubscriptions' || CHANGES.some((row) => row.wish === wish),
    ),
  );
  line.notify(notice('notifications/subscriptions/acknowledged', { notifications: granted, _meta: mark }));
  const stop = changes((heard) => {
    const row = CHANGES.find(({ wire }) => wire === heard.method);
    const wants = row ? wishes[row.wish] === true : uris.includes(heard.params?.uri ?? null);
    if (!wants) return;
    const meta = isObject(heard.params?._meta) ? heard.params._meta : {};
    line.notify({ ...heard, params: { ...heard.params, _meta: { ...meta, ...mark } } });
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
