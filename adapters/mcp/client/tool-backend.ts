/**
 * The backend for one tool server, of either era and over any transport. Callers of the other era are served in theirs. Its
 * tool definitions are pinned, and its annotations are believed only where the configuration says so.
 */
import { CHANGES, methodRow } from '../../../mappings/mcp.ts';
import {
  type Action,
  asFault,
  asText,
  type CallerReference,
  type Deps,
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
import { type AskServer, createEitherEra } from '../compat/either-era.ts';
import { createModernView } from '../compat/legacy-as-modern.ts';
import { createLegacyView } from '../compat/modern-as-legacy.ts';
import { type UpstreamConfig, upstreamSettings } from '../config.ts';
import { type FrameOutcome, type Notice, outcomeOf } from '../frames.ts';
import { announcing, unansweredBy } from '../gateways.ts';
import { paramHeaders } from '../header-values.ts';
import { isMcpRequestContext, type McpRequestContext } from '../request-context.ts';
import { createTaskEras } from '../tasks/legacy-as-modern.ts';
import { createLegacyTasks } from '../tasks/modern-as-legacy.ts';
import { withOwnSpan } from '../trace.ts';
import {
  isPlainName,
  taints,
  toAttributes,
  toCallParams,
  toEffect,
  toToolResult,
  withLoss,
  withMeta,
} from '../translate.ts';
import type { UpstreamAuthDeps } from './auth/auth.ts';
import { asItIs, createContentLook } from './content-look.ts';
import { createEras } from './eras.ts';
import { createKnownLists } from './known-lists.ts';
import { createLegacyPeers } from './legacy-peers.ts';
import { createModernPeer } from './modern-peer.ts';
import { createCatalogReader } from './read-catalog.ts';
import { createResponseTimeout, FOREVER_MS } from './timeout.ts';
import { createToolCatalog } from './tool-catalog.ts';
import { CLIENT_INFO, transportFor } from './transport/create-transport.ts';
import { createModernConnection } from './transport/modern-connection.ts';
import { trackConnections } from './transport/open-connections.ts';
import type { Opened, Unasked } from './transport/transport.ts';
import { createListening, createWatching } from './watch-changes.ts';

type UpstreamDeps = Pick<Deps, 'secret' | 'keep' | 'alone' | 'log' | 'clock' | 'ids' | 'refused'> &
  Pick<UpstreamAuthDeps, 'auth'>;

const POOL_IDLE_MS = 5 * 60_000;

export function createUpstream(name: string, config: UpstreamConfig, deps: UpstreamDeps): ToolBackend {
  const settings = upstreamSettings(config);
  const connections = trackConnections(transportFor(name, config, deps), { ...settings, name, log: deps.log });
  const { transport } = connections;
  const catalog = createToolCatalog(name, deps);
  const eras = createEras(transport, settings, deps.clock);
  let count = 0;

  const view = createLegacyView(() => modern);
  const connection = createModernConnection({
    open: (unasked) => openWire({ revision: undefined }, unasked),
    received(frame) {
      noted(frame);
      if (frame.method === 'notifications/message') modern.message(frame);
    },
    refused,
  });
  const modern = createModernPeer(
    connection.wire,
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
  const watching = createWatching((signal) => listen(signal));
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
  const listen = createListening({ eras, catalog, lists, modern, legacy, refresh, noted, restMs: POOL_IDLE_MS });

  function noted(frame: Notice, key?: string): void {
    const list = CHANGES.find(({ wire }) => wire === frame.method)?.list;
    if (list === undefined) return;
    const source = transport.kind === 'stdio' ? (key ?? 'modern') : undefined;
    if (list === 'tools') catalog.changed(source);
    else lists.changed(list, source);
    watching.changed(list);
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

  const callModern: AskServer = (method, params, context, timeout) => {
    const older = context.era === 'legacy' && method === 'tools/call';
    return older ? legacyTasks.call(params, context, timeout) : modern.call(method, params, context, timeout);
  };
  const askInEitherEra = createEitherEra({ eras, modern, legacy, view, modernView, legacyTasks, callModern });

  /** One request in the caller's era, answered in it. A tool call is never answered from a cache. */
  const talk: AskServer = (method, params, context, timeout) => {
    const plainCall = eras.known(context) === 'modern' && methodRow(method)?.handling === 'act';
    return plainCall ? callModern(method, params, context, timeout) : askInEitherEra(method, params, context, timeout);
  };

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
    async pass({ method, params }, signal, callContext, inspect = asItIs) {
      const caller = isMcpRequestContext(callContext) ? callContext : backgroundContext();
      caller.began?.();
      const { trace } = caller;
      const look = createContentLook(inspect, method);
      const traced =
        trace && transport.kind === 'http' ? { headers: { ...caller.headers, ...outgoingTrace(trace) } } : {};
      const context: McpRequestContext = { ...caller, ...traced, notify: look.notices(caller.notify) };
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
        const outcome = await (context.mayBeKnown ? lists.answer(method, asked, context, read) : read());
        return (await look.answer(outcome)) as JsonObject;
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
      await Promise.all([connection.close(), eras.spare()?.wire.close()]);
    },
  };
}

/** Whether calls of a tool can be tasks, as 2025-11-25 declares it. */
function taskSupport(tool: JsonObject | undefined): Json | undefined {
  return isObject(tool?.execution) ? tool.execution.taskSupport : undefined;
}
