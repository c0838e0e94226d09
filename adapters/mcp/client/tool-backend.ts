/**
 * The backend for one tool server, of either era and over any transport. Callers of the other era are served in theirs. Its
 * tool definitions are pinned, and its annotations are believed only where the configuration says so.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { CHANGES, CODES, methodRow } from '../../../mappings/mcp.ts';
import {
  type Action,
  asFault,
  asText,
  type CallerReference,
  type Deps,
  type Effect,
  Fault,
  isObject,
  type Json,
  type JsonObject,
  type RequestContext,
  type ToolBackend,
  type ToolResult,
} from '../../../src/index.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import { outgoingTrace } from '../../../src/transport/outbound/trace-context.ts';
import { backgroundContext } from '../background-context.ts';
import { createModernView } from '../compat/legacy-as-modern.ts';
import { createLegacyView } from '../compat/modern-as-legacy.ts';
import { type UpstreamConfig, upstreamSettings } from '../config.ts';
import { serverFrameTrouble } from '../frame-rules.ts';
import { type FrameOutcome, failed, type Notice, outcomeOf, type Request } from '../frames.ts';
import { announcing, unansweredBy } from '../gateways.ts';
import { paramHeaders } from '../header-values.ts';
import { isMcpRequestContext, type McpRequestContext } from '../request-context.ts';
import { createTaskEras } from '../tasks/legacy-as-modern.ts';
import { createLegacyTasks } from '../tasks/modern-as-legacy.ts';
import { withOwnSpan } from '../trace.ts';
import { isPlainName, taints, toAttributes, toEffect, toToolResult } from '../translate.ts';
import type { UpstreamAuthDeps } from './auth/auth.ts';
import { createEras } from './eras.ts';
import { createKnownLists } from './known-lists.ts';
import { createLegacyPeers } from './legacy-peers.ts';
import { SessionRefused } from './legacy-session.ts';
import { createModernPeer } from './modern-peer.ts';
import { createCatalogReader } from './read-catalog.ts';
import { createResponseTimeout, type ResponseTimeout, unlessStopped } from './timeout.ts';
import { createToolCatalog } from './tool-catalog.ts';
import { CLIENT_INFO, transportFor } from './transport/create-transport.ts';
import { trackConnections } from './transport/open-connections.ts';
import type { Opened, Unasked, Wire } from './transport/transport.ts';
import { createWatching } from './watch-changes.ts';

type UpstreamDeps = Pick<Deps, 'secret' | 'keep' | 'alone' | 'log' | 'clock' | 'ids' | 'refused'> &
  Pick<UpstreamAuthDeps, 'auth'>;

const POOL_IDLE_MS = 5 * 60_000;
const FOREVER_MS = 2 ** 31 - 1;

export function createUpstream(name: string, config: UpstreamConfig, deps: UpstreamDeps): ToolBackend {
  const settings = upstreamSettings(config);
  const connections = trackConnections(transportFor(name, config, deps), { ...settings, name, log: deps.log });
  const { transport } = connections;
  const catalog = createToolCatalog(name, deps);
  const eras = createEras(transport, settings, deps.clock);
  let shared: Promise<Wire> | undefined;
  /** The same connection once it is open, so that calls need not await a promise. */
  let ready: Wire | undefined;
  let count = 0;

  const view = createLegacyView(() => modern);
  const modern = createModernPeer(
    () => ready ?? sharedWire(),
    (context) => view.level(context),
    () => `m${++count}`,
  );
  const legacy = createLegacyPeers(
    openWire,
    { ...CLIENT_INFO },
    { idleMs: POOL_IDLE_MS, startMs: settings.startMs, share: settings.share },
    refused,
  );
  const legacyTasks = createLegacyTasks({
    peer: modern,
    level: (context) => view.level(context),
    supported: view.tasks,
  });
  const tasks = createTaskEras(legacy, (tool) => taskSupport(catalog.tool(tool)));
  /** A program that was started for one session may have tools of its own; a server over HTTP has the same ones for all sessions. */
  const sourceOf = (key: string) => (transport.kind === 'stdio' ? key : 'legacy');
  const modernView = createModernView({
    legacy,
    tasks,
    observe: (method, params, outcome, context) => observe(method, params, outcome, sourceOf(legacy.keyOf(context))),
  });
  const lists = createKnownLists({ eras, legacy, clock: deps.clock });
  legacy.onChange(noted);
  legacy.onGone((key) => {
    lists.gone(key);
    if (catalog.gone(sourceOf(key))) watching.changed('tools');
  });
  const watching = createWatching(listenForChanges);
  const refresh = createCatalogReader({
    settings,
    catalog,
    eras,
    legacy,
    view,
    exchange,
    background: backgroundContext,
    sourceOf,
    changed: () => watching.changed('tools'),
  });

  function noted(frame: Notice, key?: string): void {
    const list = CHANGES.find(({ wire }) => wire === frame.method)?.list;
    if (list === undefined) return;
    const source = transport.kind === 'stdio' ? (key ?? 'modern') : undefined;
    if (list === 'tools') catalog.changed(source);
    else lists.changed(list, source);
    watching.changed(list);
  }

  /** Returns when the server can no longer be listened to. An open session already receives its notifications. */
  async function listenForChanges(signal: AbortSignal): Promise<void> {
    const timeout = createResponseTimeout(signal, FOREVER_MS, FOREVER_MS);
    const notify = (frame: Notice) => {
      noted(frame);
      const { notifications } = frame.params ?? {};
      if (frame.method === ACKNOWLEDGED && isObject(notifications)) lists.announced(notifications);
    };
    const context = { ...backgroundContext(), notify };
    try {
      const era = await eras.own();
      if (!catalog.fresh) await refresh();
      if (era === 'modern') {
        const notifications = Object.fromEntries(CHANGES.map(({ wish }) => [wish, true]));
        await modern.call('subscriptions/listen', { notifications }, context, timeout).finally(() => {
          catalog.changed();
          lists.announced({});
        });
        return;
      }
      while (!signal.aborted) {
        const session = await (legacy.any()?.session ?? legacy.of(context, timeout));
        if (!catalog.fresh) await refresh();
        // Used again before it has rested for too long.
        const rested = pause(POOL_IDLE_MS / 2, true, { signal, ref: false });
        // What the server announced from now on was not heard.
        if (!(await Promise.race([session.gone.then(() => false), rested]))) catalog.changed();
      }
    } finally {
      timeout.end();
    }
  }

  /** Reuses the connection on which the era was detected. */
  async function openWire(opened: Opened, unasked: Unasked) {
    connections.requireOpen();
    const left = eras.spare();
    if (!left) return await transport.open(opened, unasked);
    left.listen(unasked);
    return left.wire;
  }

  /** Frames outside of any call have no task in whose log they could be recorded. */
  function refused(method: string, reason: string): void {
    deps.log.warn({ server: name, method: method.slice(0, 80), why: reason }, 'a frame of a tool server was refused');
    deps.refused?.({ protocol: 'mcp', from: name, method, reason });
  }

  function turnedAway(wire: Promise<Wire>, frame: Notice | Request, why: string): void {
    refused(frame.method, why);
    if (!('id' in frame)) return;
    const { id } = frame;
    wire.then((open) => open.respond(id, failed(CODES.methodNotFound, why))).catch(() => {});
  }

  function sharedWire(): Promise<Wire> {
    if (shared) return shared;
    const opening = openWire({ revision: undefined }, (frame) => {
      const trouble = serverFrameTrouble(frame);
      // In this era servers ask clients only in results.
      if ('id' in frame || trouble) return turnedAway(opening, frame, trouble ?? NO_REQUESTS);
      noted(frame);
      if (frame.method === 'notifications/message') modern.message(frame);
    });
    shared = opening;
    const forget = () => {
      if (shared === opening) [shared, ready] = [undefined, undefined];
    };
    opening.then((wire) => {
      if (shared === opening) ready = wire;
      return wire.gone.finally(forget);
    }, forget);
    return opening;
  }

  /** One request in the caller's era, answered in it. A tool call is never answered from a cache. */
  function talk(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const plainCall = eras.known(context) === 'modern' && methodRow(method)?.handling === 'act';
    return plainCall ? callModern(method, params, context, timeout) : talkEither(method, params, context, timeout);
  }

  function callModern(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const older = context.era === 'legacy' && method === 'tools/call';
    return older ? legacyTasks.call(params, context, timeout) : modern.call(method, params, context, timeout);
  }

  async function talkEither(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
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
  }

  /** A modern server, for a caller of either era. */
  async function talkModern(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    if (context.era === 'modern') return await modern.call(method, params, context, timeout);
    const own = await view.answer(method, params, context, timeout);
    const task = own ?? (await legacyTasks.answer(method, params, context, timeout));
    return task ?? (await callModern(method, params, context, timeout));
  }

  async function talkLegacy(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    timeout: ResponseTimeout,
  ): Promise<FrameOutcome> {
    const { session } = context;
    if (session && method === 'initialize') {
      return { result: (await legacy.open(session, params, context, timeout)).about };
    }
    if (session && method.startsWith('notifications/')) {
      await legacy.notify(session, { jsonrpc: '2.0', method, ...(Object.keys(params).length > 0 && { params }) });
      return { result: {} };
    }
    return await legacy.call(method, params, context, timeout);
  }

  async function exchange(
    method: string,
    params: JsonObject,
    context: McpRequestContext,
    signal: AbortSignal,
  ): Promise<FrameOutcome> {
    const long = methodRow(method)?.long;
    const timeout = createResponseTimeout(
      signal,
      long ? FOREVER_MS : settings.timeoutMs,
      long ? FOREVER_MS : settings.longestMs,
    );
    try {
      const outcome = await talk(method, params, context, timeout);
      if (method !== 'tools/list') return outcome;
      const era = await eras.of(context);
      // The list of a legacy server that was converted for a modern caller has been recorded before that.
      if (context.era === 'modern' && era === 'legacy') return outcome;
      observe(method, params, outcome, era === 'modern' ? era : sourceOf(legacy.keyOf(context)));
      return view.shown(method, outcome, context);
    } catch (thrown) {
      throw timeout.reason(thrown);
    } finally {
      timeout.end();
    }
  }

  /** Records definitions as their server sent them, before they are converted to another era. */
  function observe(method: string, params: JsonObject, outcome: FrameOutcome, source: string): void {
    if (method !== 'tools/list' || 'error' in outcome) return;
    const { tools, nextCursor } = outcome.result;
    if (!Array.isArray(tools)) return;
    const whole = params.cursor === undefined && nextCursor === undefined;
    if (catalog.update(source, tools, whole)) watching.changed('tools');
  }

  /** Cached by definition: an unchanged one is the same object, and every call needs it. */
  const attributes = new WeakMap<JsonObject, ReturnType<typeof toAttributes>>();

  function attributesOf(tool: JsonObject | undefined): ReturnType<typeof toAttributes> {
    const known = tool && attributes.get(tool);
    if (known) return known;
    const made = toAttributes(tool, settings);
    if (tool) attributes.set(tool, made);
    return made;
  }

  async function call(
    { tool = '', arguments: args, trace: taskTrace, effect }: Pick<Action, 'tool' | 'arguments' | 'trace' | 'effect'>,
    signal: AbortSignal,
    callContext: RequestContext | undefined,
    announced?: { readonly action: Action; readonly about: CallerReference },
  ): Promise<ToolResult> {
    const caller = isMcpRequestContext(callContext) ? callContext : backgroundContext();
    caller.began?.();
    const entry = catalog.tool(tool);
    const trace = caller.trace ?? taskTrace;
    const copied = paramHeaders(entry?.inputSchema, args);
    // Without a trace of the caller's, the HTTP client starts one where it writes the headers.
    const headers = trace && transport.kind === 'http' ? { ...copied, ...outgoingTrace(trace) } : copied;
    const context: McpRequestContext = headers ? { ...caller, headers } : caller;
    const plain = withOwnSpan(toCallParams(caller.params, tool, args), trace, transport.kind === 'stdio');
    const params = announced ? announcing(plain, announced.action, announced.about) : plain;
    const about = announced?.about;
    const egress =
      transport.host === undefined ? undefined : { host: transport.host, purpose: `mcp tools/call ${tool}` };
    try {
      const outcome = await exchange('tools/call', params, context, signal);
      const result = withLoss(toToolResult(outcome, egress, name, about), effect);
      return taints(entry, settings) ? { taint: { server: name, what: tool }, ...result } : result;
    } catch (thrown) {
      const { kind, message, details } = asFault(thrown);
      if (thrown instanceof RpcError) return toToolResult(outcomeOf(thrown), egress, name, about);
      const sent = details?.unanswered === true;
      const open = sent || kind === 'deadline_exceeded' || signal.aborted;
      return {
        status: 'error',
        output: null,
        error: `${name}: ${message}`,
        code: sent ? 'outcome_unknown' : asText(details?.code ?? kind),
        ...(about && open && { remote: unansweredBy(name, about) }),
      };
    }
  }

  return {
    name,
    pinned: true,
    answersMissing: true,
    ...(config.command && { programs: connections.programs }),
    async list() {
      if (!catalog.fresh) await refresh();
      return catalog.skills();
    },
    effect(tool) {
      const entry = catalog.tool(tool);
      return entry && toEffect(entry, tool, settings);
    },
    attributes: (tool) => attributesOf(catalog.tool(tool)),
    taints({ method }) {
      const row = methodRow(method);
      // The result of a request in no row of the table is unknown, so it counts as untrusted content.
      return !settings.trusted && (row === undefined || row.reads === true);
    },
    async call(action, signal, callContext, reference) {
      const about = settings.gateway ? await reference?.('mcp') : undefined;
      return await call(action, signal, callContext, about && { about, action });
    },
    unlisted(tool) {
      // Names that could be mistaken for another are left out of the list, and stay uncallable.
      if (!isPlainName(tool) || catalog.hasListed(tool)) return undefined;
      return (args, signal, callContext) => call({ tool, arguments: args, effect: 'unknown' }, signal, callContext);
    },
    async pass({ method, params }, signal, callContext) {
      const caller = isMcpRequestContext(callContext) ? callContext : backgroundContext();
      caller.began?.();
      const { trace } = caller;
      const traced =
        trace && transport.kind === 'http' ? { headers: { ...caller.headers, ...outgoingTrace(trace) } } : {};
      const context: McpRequestContext = { ...caller, ...traced };
      try {
        // A tool call is an act and never a passthrough.
        if (methodRow(method)?.handling === 'act') throw new Fault('invalid_request', `${method} is not passed on`);
        const asked = withOwnSpan(
          withMeta(method, isObject(params) ? params : {}, context),
          trace,
          transport.kind === 'stdio',
        );
        const ours = await context.tasks?.answer(method, asked);
        if (ours) return ours as JsonObject;
        const read = () => exchange(method, asked, context, signal);
        return (await (context.mayBeKnown ? lists.answer(method, asked, context, read) : read())) as JsonObject;
      } catch (thrown) {
        return outcomeOf(thrown) as JsonObject;
      }
    },
    watch: watching.watch,
    async close() {
      watching.close();
      tasks.close();
      await connections.close();
      // A connection on which the era is still being detected is a child process as well.
      await eras.settled();
      await legacy.close();
      const left = [await shared?.catch(() => undefined), eras.spare()?.wire];
      await Promise.all(left.map((wire) => wire?.close()));
    },
  };
}

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const NO_REQUESTS = 'a server makes no requests in this revision';

/** A request in no row of the table was decided without its `_meta`, which is restored here. */
function withMeta(method: string, params: JsonObject, { params: { _meta } }: McpRequestContext): JsonObject {
  return methodRow(method) || _meta === undefined ? params : { ...params, _meta };
}

/** The params as received, with the decided tool and arguments. If those are unchanged, nothing is copied. */
function toCallParams(params: JsonObject, tool: string, args: JsonObject): JsonObject {
  if (params.name === tool && params.arguments === args) return params;
  const { arguments: said, ...rest } = params;
  // Some servers take null for no arguments and some refuse it, which is theirs to say.
  if ((said === undefined || said === null) && Object.keys(args).length === 0) return { ...params, name: tool };
  return { ...rest, name: tool, arguments: args };
}

/** Whether calls of a tool can be tasks, as 2025-11-25 declares it. */
function taskSupport(tool: JsonObject | undefined): Json | undefined {
  return isObject(tool?.execution) ? tool.execution.taskSupport : undefined;
}

/** A result is text for a model: of a call that changes something, it does not say what. */
function withLoss(result: ToolResult, effect: Effect): ToolResult {
  if (result.status !== 'ok' || result.remote || !CHANGING.has(effect)) return result;
  return {
    ...result,
    loss: [{ aspect: 'effects', why: 'the result of the server does not say what the call changed' }],
  };
}
const CHANGING: ReadonlySet<Effect> = new Set(['write', 'delete', 'send', 'publish', 'pay']);
