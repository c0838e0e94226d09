/**
 * One server of tools behind the bridge, whichever era it speaks and wherever it is. Callers of the other era are met in
 * theirs. Its definitions are pinned, its word about itself is believed only where the configuration says so.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { CHANGES, CODES, type Era, methodRow } from '../../mappings/mcp.ts';
import { asFault, type Deps, Fault, type Json, type JsonObject, type ToolBackend } from '../../src/index.ts';
import { createBook } from './book.ts';
import { type UpstreamConfig, upstreamSettings } from './config.ts';
import { findEra, type Verdict } from './era.ts';
import { toDiscoverResult, toModernOutcome, wanted } from './eras.ts';
import { serverFrameTrouble } from './frame-rules.ts';
import { failed, isObject, metaOf, type Notice, type Outcome, outcomeOf, type Request, RpcError } from './frames.ts';
import { paramHeaders } from './header-values.ts';
import { createLegacyPeers } from './legacy-peers.ts';
import { createLegacyTasks } from './legacy-tasks.ts';
import { createLegacyView, listenTo } from './legacy-view.ts';
import { isLine, type McpLine } from './line.ts';
import { createModernPeer } from './modern-peer.ts';
import { createPatience, type Patience } from './patience.ts';
import type { Opened, Unasked, Wire } from './south.ts';
import { createTaskEras } from './task-eras.ts';
import { taints, toAttributes, toEffect, toToolResult } from './translate.ts';
import { createWatching } from './watching.ts';
import { CLIENT_INFO, wayOf } from './way.ts';

type UpstreamDeps = Pick<Deps, 'secret' | 'keep' | 'alone' | 'log' | 'clock' | 'ids'>;

const POOL_IDLE_MS = 5 * 60_000;
const FOREVER_MS = 2 ** 31 - 1;
/** An older server may have been replaced by a newer one by then; the other way round shows at once. */
const LEGACY_VERDICT_MS = 10 * 60_000;

export function createUpstream(name: string, config: UpstreamConfig, deps: UpstreamDeps): ToolBackend {
  const settings = upstreamSettings(config);
  const way = wayOf(name, config, deps);
  const book = createBook(name, deps);
  let verdict: { found: Promise<Verdict>; until: number } | undefined;
  let spare: Verdict['spare'];
  let shared: Promise<Wire> | undefined;
  /** The same, once it is open; and the era, once it is known for good. Whoever calls need not wait for what is there. */
  let ready: Wire | undefined;
  let settled: Era | undefined = settings.era === 'auto' ? undefined : settings.era;
  let count = 0;
  let closed = false;

  const view = createLegacyView(() => modern);
  const modern = createModernPeer(
    () => ready ?? sharedWire(),
    (line) => view.level(line),
    () => `m${++count}`,
  );
  const legacy = createLegacyPeers(openWire, { ...CLIENT_INFO }, POOL_IDLE_MS);
  const legacyTasks = createLegacyTasks({ peer: modern, level: (line) => view.level(line), offered: view.tasks });
  const tasks = createTaskEras(legacy, (tool) => taskSupport(book.tool(tool)));
  legacy.onChange(noted);
  const watching = createWatching(listenForChanges);

  function noted(frame: Notice): void {
    if (frame.method === 'notifications/tools/list_changed') book.changed();
    watching.noted(frame);
  }

  /** For as long as the server can be heard. A session that is open anyway is listened to already. */
  async function listenForChanges(signal: AbortSignal): Promise<void> {
    const patience = createPatience(signal, FOREVER_MS, FOREVER_MS);
    const line = { ...backgroundLine(), notify: noted };
    try {
      if ((await era()) === 'modern') {
        const notifications = Object.fromEntries(CHANGES.map(({ wish }) => [wish, true]));
        await modern.call('subscriptions/listen', { notifications }, line, patience);
        return;
      }
      while (!signal.aborted) {
        const session = await (legacy.any() ?? legacy.of(line, patience));
        // Used again before it has rested for too long.
        await Promise.race([session.gone, pause(POOL_IDLE_MS / 2, undefined, { signal, ref: false })]);
      }
    } finally {
      patience.end();
    }
  }

  /** The wire the era was asked on is the first one to be used. */
  async function openWire(opened: Opened, unasked: Unasked) {
    if (closed) throw new Fault('unavailable', `${name} is closed`);
    const left = spare;
    spare = undefined;
    if (!left) return await way.open(opened, unasked);
    left.listen(unasked);
    return left.wire;
  }

  function turnedAway(wire: Promise<Wire>, frame: Notice | Request, why: string): void {
    deps.log.warn({ server: name, method: frame.method.slice(0, 80), why }, 'a frame of a tool server was refused');
    if (!('id' in frame)) return;
    const { id } = frame;
    wire.then((open) => open.respond(id, failed(CODES.methodNotFound, why))).catch(() => {});
  }

  function sharedWire(): Promise<Wire> {
    if (shared) return shared;
    const opening = openWire({ revision: undefined }, (frame) => {
      const trouble = serverFrameTrouble(frame);
      // In this era nobody asks a client anything but in a result.
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

  async function era(): Promise<Era> {
    if (settled) return settled;
    if (!verdict || Date.parse(deps.clock.now()) > verdict.until) {
      const found = findEra(way);
      const fresh = { found, until: Number.POSITIVE_INFINITY };
      verdict = fresh;
      found.then(
        (said) => {
          if (said.spare) spare = said.spare;
          if (said.era === 'legacy' && way.kind === 'http') {
            fresh.until = Date.parse(deps.clock.now()) + LEGACY_VERDICT_MS;
          } else settled = said.era;
        },
        () => {
          if (verdict === fresh) verdict = undefined;
        },
      );
    }
    return (await verdict.found).era;
  }

  /** One request in the caller's era, answered in it. A call of a tool is never answered from anything kept here. */
  function talk(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const plainCall = settled === 'modern' && methodRow(method)?.handling === 'act';
    return plainCall ? callModern(method, params, line, patience) : talkEither(method, params, line, patience);
  }

  function callModern(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const older = line.era === 'legacy' && method === 'tools/call';
    return older ? legacyTasks.call(params, line, patience) : modern.call(method, params, line, patience);
  }

  async function talkEither(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    if ((await era()) === 'modern') {
      if (line.era === 'modern') return await modern.call(method, params, line, patience);
      const own = await view.answer(method, params, line, patience);
      const task = own ?? (await legacyTasks.answer(method, params, line, patience));
      return task ?? (await callModern(method, params, line, patience));
    }
    if (line.era === 'legacy') return await talkLegacy(method, params, line, patience);
    const session = await legacy.of(line, patience);
    if (method === 'server/discover') return { result: toDiscoverResult(session.about) };
    if (method === 'subscriptions/listen') {
      const { resourceSubscriptions: uris } = isObject(params.notifications) ? params.notifications : {};
      for (const uri of Array.isArray(uris) ? uris : []) {
        await legacy.call('resources/subscribe', { uri }, line, patience);
      }
      return await listenTo((heard) => session.onChange(heard), params, line, patience.signal);
    }
    const meta = metaOf(params);
    const filtered: McpLine = { ...line, notify: (heard) => wanted(heard, meta) && line.notify(heard) };
    const task = await tasks.answer(
      method,
      { ...plain(params), ...answersIn(params) },
      filtered,
      patience,
      session.about,
    );
    if (task) return task;
    const outcome = await legacy.call(method, plain(params), filtered, patience);
    observe(method, params, outcome);
    return toModernOutcome(method, outcome, session.about);
  }

  async function talkLegacy(method: string, params: JsonObject, line: McpLine, patience: Patience): Promise<Outcome> {
    const { session } = line;
    if (session && method === 'initialize') {
      return { result: (await legacy.open(session, params, patience)).about };
    }
    if (session && method.startsWith('notifications/')) {
      await legacy.notify(session, { jsonrpc: '2.0', method, ...(Object.keys(params).length > 0 && { params }) });
      return { result: {} };
    }
    return await legacy.call(method, params, line, patience);
  }

  async function exchange(method: string, params: JsonObject, line: McpLine, signal: AbortSignal): Promise<Outcome> {
    const long = methodRow(method)?.long;
    const patience = createPatience(
      signal,
      long ? FOREVER_MS : settings.timeoutMs,
      long ? FOREVER_MS : settings.longestMs,
    );
    try {
      const outcome = await talk(method, params, line, patience);
      if (method === 'tools/list' && (line.era === 'legacy' || (await era()) === 'modern')) {
        observe(method, params, outcome);
        return view.shown(method, outcome, line);
      }
      return outcome;
    } catch (thrown) {
      throw patience.reason(thrown);
    } finally {
      patience.end();
    }
  }

  /** Definitions as their server told them, before they are told in another era's words. */
  function observe(method: string, params: JsonObject, outcome: Outcome): void {
    if (method !== 'tools/list' || 'error' in outcome) return;
    const { tools, nextCursor } = outcome.result;
    if (!Array.isArray(tools)) return;
    if (book.heard(tools, params.cursor === undefined && nextCursor === undefined)) watching.changed('tools');
  }

  /** By definition: one that has not changed is the same object, and every call asks. */
  const attributes = new WeakMap<JsonObject, ReturnType<typeof toAttributes>>();

  function attributesOf(told: JsonObject | undefined): ReturnType<typeof toAttributes> {
    const known = told && attributes.get(told);
    if (known) return known;
    const made = toAttributes(told, settings);
    if (told) attributes.set(told, made);
    return made;
  }

  let reading: Promise<void> | undefined;
  /** All pages, through a session that is open anyway where there is one. */
  async function readBook(): Promise<void> {
    const line = backgroundLine();
    const signal = AbortSignal.timeout(settings.timeoutMs);
    const all: Json[] = [];
    for (let cursor: Json | undefined, pages = 0; pages < MOST_PAGES; pages += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const session = (await era()) === 'legacy' ? await legacy.any() : undefined;
      const patience = createPatience(signal, settings.timeoutMs, settings.longestMs);
      const outcome = session
        ? await session.call('tools/list', params, line, patience).finally(() => patience.end())
        : await exchange('tools/list', params, line, signal);
      if ('error' in outcome) throw new RpcError(outcome.error.code, outcome.error.message);
      const { tools, nextCursor } = outcome.result;
      all.push(...(Array.isArray(tools) ? tools : []));
      if (nextCursor === undefined || nextCursor === null) break;
      cursor = nextCursor;
    }
    const news = book.mayBeTasks(await makesTasks(line, signal));
    if (book.heard(all, true) || news) watching.changed('tools');
  }

  /** Whether a server of the modern era makes tasks of calls. What cannot be found out is not so. */
  async function makesTasks(line: McpLine, signal: AbortSignal): Promise<boolean> {
    if ((await era()) !== 'modern') return false;
    const patience = createPatience(signal, settings.timeoutMs, settings.longestMs);
    return await view
      .offersTasks(line, patience)
      .catch(() => false)
      .finally(() => patience.end());
  }

  return {
    name,
    pinned: true,
    async list() {
      if (!book.fresh) {
        reading ??= readBook().finally(() => {
          reading = undefined;
        });
        await reading;
      }
      return book.skills();
    },
    effect(tool) {
      const told = book.tool(tool);
      return told && toEffect(told, tool, settings);
    },
    attributes: (tool) => attributesOf(book.tool(tool)),
    taints({ method }) {
      const row = methodRow(method);
      // Nobody knows what a request in no row of the table brings back.
      return !settings.trusted && (row === undefined || row.reads === true);
    },
    async call({ tool = '', arguments: args }, signal, given) {
      const caller = isLine(given) ? given : backgroundLine();
      const told = book.tool(tool);
      const headers = paramHeaders(told?.inputSchema, args);
      const line: McpLine = headers ? { ...caller, headers } : caller;
      const params = toCallParams(caller.params, tool, args);
      const egress = way.host === undefined ? undefined : { host: way.host, purpose: `mcp tools/call ${tool}` };
      try {
        const outcome = await exchange('tools/call', params, line, signal);
        const result = toToolResult(outcome, egress);
        return taints(told, settings) ? { taint: { server: name, what: tool }, ...result } : result;
      } catch (thrown) {
        const { kind, message } = asFault(thrown);
        if (thrown instanceof RpcError) return toToolResult(outcomeOf(thrown), egress);
        return { status: 'error', output: null, error: `${name}: ${message}`, code: kind };
      }
    },
    async pass({ method, params }, signal, given) {
      const line = isLine(given) ? given : backgroundLine();
      try {
        // A call is an act of its own, never something that is passed on.
        if (methodRow(method)?.handling === 'act') throw new Fault('invalid_request', `${method} is not passed on`);
        const asked = withMeta(method, isObject(params) ? params : {}, line);
        const ours = await line.tasks?.answer(method, asked);
        return (ours ?? (await exchange(method, asked, line, signal))) as unknown as JsonObject;
      } catch (thrown) {
        return outcomeOf(thrown) as unknown as JsonObject;
      }
    },
    watch: watching.watch,
    async close() {
      closed = true;
      watching.close();
      tasks.close();
      // One that is still being asked about its era is a child as well.
      await verdict?.found.catch(() => {});
      await legacy.close();
      const left = [await shared?.catch(() => undefined), spare?.wire];
      await Promise.all(left.map((wire) => wire?.close()));
    },
  };
}

const MOST_PAGES = 100;
const NO_REQUESTS = 'a server makes no requests in this revision';

/** Nobody who could be asked anything: the house itself looks, or another protocol's caller does. */
function backgroundLine(): McpLine {
  return {
    // Without a session, and without an envelope of its own: whoever talks for it supplies what the server's era wants.
    era: 'legacy',
    id: 0,
    params: {},
    principal: '',
    capabilities: {},
    client: { ...CLIENT_INFO },
    notify() {},
    input: () => Promise.reject(new Fault('not_implemented', 'nobody is there to be asked')),
  };
}

/** A request in no row of the table was decided on without what its sender said beside it. */
function withMeta(method: string, params: JsonObject, { params: { _meta } }: McpLine): JsonObject {
  return methodRow(method) || _meta === undefined ? params : { ...params, _meta };
}

/** The request as it came, with what was decided on in it. Where that is the very same, nothing is copied. */
function toCallParams(given: JsonObject, tool: string, args: JsonObject): JsonObject {
  if (given.name === tool && given.arguments === args) return given;
  const { arguments: said, ...rest } = given;
  const empty = said === undefined && Object.keys(args).length === 0;
  return { ...rest, name: tool, ...(!empty && { arguments: args }) };
}

/** Whether calls of a tool can be tasks, by the word of 2025-11-25. */
function taskSupport(tool: JsonObject | undefined): Json | undefined {
  return isObject(tool?.execution) ? tool.execution.taskSupport : undefined;
}

/** Only a task takes answers that way. */
function answersIn({ taskId, inputResponses }: JsonObject): JsonObject {
  return taskId !== undefined && inputResponses !== undefined ? { inputResponses } : {};
}

/** Without what only the modern era has. */
function plain(params: JsonObject): JsonObject {
  const { inputResponses: _i, requestState: _r, _meta, ...rest } = params;
  const meta = Object.fromEntries(
    Object.entries(isObject(_meta) ? _meta : {}).filter(([key]) => !key.startsWith('io.modelcontextprotocol/')),
  );
  return Object.keys(meta).length > 0 ? { ...rest, _meta: meta } : rest;
}
