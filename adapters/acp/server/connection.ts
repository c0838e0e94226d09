/**
 * Our side of one connection with a client, for which we are the agent, whichever agent does the work. Each call becomes a
 * bridge command or a read of the log; nothing is decided here, and the only state is which sessions are watched.
 */

import type { AgentRequestMethod } from '@agentclientprotocol/sdk';
import type { InitializeResponse } from '@agentclientprotocol/sdk/unstable';
import { PROTOCOL } from '../../../mappings/acp.ts';
import { HITL_RESPOND, PROVIDER_CATALOG } from '../../../mappings/acp-harn.ts';
import {
  type Actor,
  type AskRecord,
  anySignal,
  asFault,
  asText,
  type Bridge,
  Fault,
  type Json,
  type JsonObject,
  type Logger,
  type Row,
  type Session,
  type Task,
  VERSION,
} from '../../../src/index.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import type { Asked, Peer } from '../../../src/transport/json-rpc/peer.ts';
import type { AcpSettings } from '../config.ts';
import { harnCapabilities } from '../harn.ts';
import { toCoreAnswer } from '../hitl.ts';
import { openingAnswer, openingForm } from '../opening.ts';
import { createAcpPeer } from '../peer.ts';
import { listOf, lookup, objectOf, textOf, within } from '../shapes.ts';
import { OURS } from '../translate.ts';
import { type ClientProfile, profileOf } from './client-profile.ts';
import { requireSoundParams } from './params.ts';
import { cancelTasks, givePrompt, giveSteering } from './prompt.ts';
import { mayAnswer } from './questions.ts';
import { createViewer, type Viewer, type ViewerDeps } from './viewer.ts';
import { AGENT_OPTION, createWorkspaces, DEFAULT_MODE, requireDirectory, type Workspaces } from './workspaces.ts';

interface ConnectionOptions {
  readonly bridge: Bridge;
  readonly actor: Actor;
  readonly settings: AcpSettings;
  readonly log: Logger;
  send(text: string): Promise<void>;
  readonly stamp?: (client: ClientProfile) => ViewerDeps['stamp'];
}

export interface ClientConnection {
  /** Resolves once the next message may be read. */
  receive(text: string): Promise<void>;
  /** The tasks of this client that have not ended. */
  unfinished(): readonly string[];
  /** The connection is closed. Running work continues, or is canceled. */
  close(open: 'continue' | 'cancel'): Promise<void>;
}

type Call = (asked: Asked) => Promise<Json>;

export function createConnection(options: ConnectionOptions): ClientConnection {
  const { bridge, actor, settings, log } = options;
  const viewers = new Map<string, Viewer>();
  let closed = false;
  const workspaces: Workspaces = createWorkspaces(bridge, actor, settings);
  let client: ClientProfile | undefined;

  const peer: Peer = createAcpPeer({
    send: options.send,
    log,
    other: 'editor',
    strict: true,
    async request(asked) {
      const serve = lookup(CALLS, asked.method);
      if (!serve) throw new RpcError({ code: -32601, message: `there is no method ${asked.method.slice(0, 100)}` });
      if (!client && asked.method !== 'initialize')
        throw new RpcError({ code: -32600, message: 'initialize comes first' });
      requireSoundParams(asked.method, asked.params);
      return await serve(asked);
    },
    async notification(method, params) {
      if (method !== 'session/cancel' || !client) return;
      const viewer = viewers.get(asText(params.sessionId));
      if (!viewer) return;
      // Not awaited: later messages must not wait for work that stops slowly.
      viewer.canceling = true;
      cancelTasks(bridge, actor, viewer, textOf(within(params, '_meta', OURS, 'reason')))
        .catch((cause) => log.warn({ err: cause, session: viewer.sessionId }, 'a cancel came to nothing'))
        .finally(() => {
          viewer.canceling = false;
        });
    },
  });

  /** The configured catalog; otherwise that of the agent that does the work here, as it reported it. */
  async function catalog(): Promise<JsonObject | undefined> {
    if (settings.catalog) return settings.catalog;
    const agents = await bridge.agents(actor).catch(() => []);
    const chosen = [...viewers.values()].at(-1)?.agent ?? settings.agent;
    const agent = agents.find((each) => (chosen ? each.name === chosen : each.default));
    return agent?.about.catalog;
  }

  async function providerCatalog(): Promise<JsonObject> {
    const found = await catalog();
    if (!found) throw new RpcError({ code: -32601, message: 'the agent here has reported no catalog of providers' });
    return found;
  }

  async function initialize(params: JsonObject): Promise<JsonObject> {
    if (typeof params.protocolVersion !== 'number') {
      throw new Fault('invalid_request', 'protocolVersion must be a number', { param: '/protocolVersion' });
    }
    client = profileOf(params, settings);
    const harn = client.harn && { harn: harnCapabilities((await catalog()) !== undefined) };
    return {
      // Only one version is supported; a client of another disconnects.
      protocolVersion: PROTOCOL,
      agentInfo: { name: 'tollbridge', title: 'Tollbridge', version: VERSION },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
        mcpCapabilities: { http: false, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, fork: {}, status: {}, title: {} },
        _meta: { [OURS]: { version: VERSION }, ...harn },
      },
      authMethods: [],
    } satisfies InitializeResponse;
  }

  function view(sessionId: string): Viewer {
    viewers.get(sessionId)?.close();
    const profile = client as ClientProfile;
    const stamp = options.stamp?.(profile);
    const viewer = createViewer({ bridge, actor, peer, client: profile, sessionId, log, ...(stamp && { stamp }) });
    viewers.set(sessionId, viewer);
    // The client went away while its session was being opened: nobody would ever close this one.
    if (closed) viewer.close();
    return viewer;
  }

  function viewerOf({ sessionId }: JsonObject): Viewer {
    const found = viewers.get(asText(sessionId));
    if (!found) throw absent(sessionId);
    return found;
  }

  /** Hidden and absent sessions are the same. */
  async function sessionOf({ sessionId }: JsonObject): Promise<Session & Row> {
    const id = textOf(sessionId);
    if (!id) throw new Fault('invalid_request', 'sessionId must be a text', { param: '/sessionId' });
    try {
      return await bridge.view<Session & Row>(actor, 'session', id);
    } catch (cause) {
      throw cause instanceof Fault && cause.kind === 'not_found' ? absent(id) : cause;
    }
  }

  /** A session goes on with the agent and the persona of its last task, unless this client chooses others. */
  async function asBefore(viewer: Viewer, { id, persona_id }: Session & Row): Promise<void> {
    const query = { object: 'task', where: { session_id: id }, newestFirst: true, limit: 1 };
    const [last] = (await bridge.list<Task & Row>(actor, query)).data;
    viewer.agent = last?.assigned_agent_id ?? undefined;
    if (last?.persona_id && last.persona_id !== persona_id) viewer.persona = last.persona_id;
  }

  async function choices(session: Session, viewer: Viewer): Promise<JsonObject> {
    return await workspaces.choices(session, { persona: viewer.persona, agent: viewer.agent });
  }

  /** A rule may leave it to a person whether a session is opened: the request waits, and the client is asked where it has forms. */
  function openingQuestion({ id, method, params }: Asked, over: AbortSignal) {
    const ask = async (ask_id: string): Promise<void> => {
      const question = await bridge.view<AskRecord & Row>(actor, 'ask', ask_id);
      if (!client?.form || !mayAnswer(actor, question)) return;
      const form = openingForm({ id: JSON.parse(id) as Json, method, cwd: params.cwd });
      const body = { ask_id, ...openingAnswer(await peer.request('elicitation/create', form, over)) };
      await bridge.submit({ kind: 'ask.answer', actor: { ...actor, interactive: true }, body });
    };
    return (askId: string) =>
      void ask(askId).catch((cause) => {
        if (!over.aborted) log.info({ err: asFault(cause), ask: askId }, 'a question was not answered here');
      });
  }

  async function open(request: Asked): Promise<JsonObject> {
    const { params, afterwards, signal } = request;
    const cwd = requireDirectory(params);
    if (!Array.isArray(params.mcpServers)) {
      throw new Fault('invalid_request', 'mcpServers must be a list', { param: '/mcpServers' });
    }
    // Names only: the other members are commands and credentials of the editor.
    const servers = listOf(params.mcpServers).flatMap((server) => textOf(within(server, 'name')) ?? []);
    const workspace_id = await workspaces.workspaceAt(cwd);
    const metadata = { acp: { cwd, client: (client as ClientProfile).name, ...(servers.length > 0 && { servers }) } };
    const over = new AbortController();
    const { resource } = await bridge
      .submit({
        kind: 'session.create',
        actor,
        body: { workspace_id, ...(settings.persona && { persona_id: settings.persona }), metadata },
        asked: openingQuestion(request, anySignal([signal, over.signal])),
        signal,
      })
      .finally(() => over.abort());
    const viewer = view(resource.id);
    // Editors drop updates of a session before they know its id.
    afterwards(() => viewer.follow());
    return { sessionId: resource.id, ...(await choices(resource as Session, viewer)) };
  }

  async function load({ params, afterwards }: Asked): Promise<JsonObject> {
    const session = await sessionOf(params);
    const viewer = view(session.id);
    await asBefore(viewer, session);
    await viewer.replay(cursorIn(params));
    afterwards(() => viewer.follow('now'));
    return await choices(session, viewer);
  }

  async function resume({ params, afterwards }: Asked): Promise<JsonObject> {
    const session = await sessionOf(params);
    const viewer = view(session.id);
    await asBefore(viewer, session);
    const after = cursorIn(params);
    if (after) await viewer.replay(after);
    else await viewer.join();
    afterwards(() => viewer.follow('now'));
    return await choices(session, viewer);
  }

  async function fork({ params, afterwards }: Asked): Promise<JsonObject> {
    const source = await sessionOf(params);
    const { resource } = await bridge.submit({ kind: 'session.fork', actor, body: { session_id: source.id } });
    const viewer = view(resource.id);
    await asBefore(viewer, source);
    afterwards(() => viewer.follow('now'));
    return { sessionId: resource.id, ...(await choices(resource as Session, viewer)) };
  }

  async function close(params: JsonObject): Promise<JsonObject> {
    const session = await sessionOf(params);
    await bridge.submit({ kind: 'session.close', actor, body: { session_id: session.id } });
    viewers.get(session.id)?.close();
    viewers.delete(session.id);
    return {};
  }

  /** Deleting twice, or deleting an absent session, succeeds. */
  async function remove(params: JsonObject): Promise<JsonObject> {
    let session: Session & Row;
    try {
      session = await sessionOf(params);
    } catch (cause) {
      if (cause instanceof Fault && cause.kind === 'not_found') return {};
      throw cause;
    }
    if (session.state !== 'CLOSED') {
      const acp = { ...objectOf((session.metadata as JsonObject).acp), deleted: true };
      await bridge.submit({ kind: 'session.update', actor, body: { session_id: session.id, metadata: { acp } } });
    }
    return await close({ sessionId: session.id });
  }

  /** Gated and recorded, because it selects the persona under which the work is judged. */
  async function requirePassage(method: string, session: Session, params: JsonObject): Promise<void> {
    const body = { protocol: 'acp', method, params, session_id: session.id, workspace_id: session.workspace_id };
    const { decision } = await bridge.submit({ kind: 'passthrough', actor, body });
    if (decision?.verdict === 'allow') return;
    throw new Fault('policy_violation', decision?.reason ?? 'it was not allowed', {
      details: { rule_id: decision?.rule_id ?? null },
    });
  }

  async function setMode({ params }: Asked): Promise<JsonObject> {
    const viewer = viewerOf(params);
    const session = await sessionOf(params);
    const before = await choices(session, viewer);
    const modes = listOf(within(before, 'modes', 'availableModes')).map((mode) => within(mode, 'id'));
    const wanted = asText(params.modeId);
    if (!modes.includes(wanted)) throw new Fault('invalid_request', 'there is no such mode', { param: '/modeId' });
    try {
      await requirePassage('session/set_mode', session, { modeId: wanted });
    } catch (cause) {
      const currentModeId = within(before, 'modes', 'currentModeId') as string;
      const update = { sessionUpdate: 'current_mode_update', currentModeId };
      await peer.notify('session/update', { sessionId: session.id, update });
      throw cause;
    }
    viewer.persona = wanted === DEFAULT_MODE ? undefined : wanted;
    return {};
  }

  async function setOption({ params }: Asked): Promise<JsonObject> {
    const viewer = viewerOf(params);
    const session = await sessionOf(params);
    const now = await choices(session, viewer);
    const [option] = listOf(now.configOptions);
    const values = listOf(within(option, 'options')).map((each) => within(each, 'value'));
    if (params.configId !== AGENT_OPTION || !values.includes(params.value as string)) {
      throw new Fault('invalid_request', 'there is no such option', { param: '/configId' });
    }
    await requirePassage('session/set_config_option', session, { configId: AGENT_OPTION, value: params.value });
    viewer.agent = asText(params.value);
    return { configOptions: (await choices(session, viewer)).configOptions ?? [] };
  }

  /** The Harn profile's call to answer any open question. */
  async function respond({ params }: Asked): Promise<JsonObject> {
    const ask_id = textOf(params.request_id);
    if (!ask_id) throw new Fault('invalid_request', 'request_id must be a text', { param: '/request_id' });
    const body = { ask_id, ...toCoreAnswer(params) };
    await bridge.submit({ kind: 'ask.answer', actor: { ...actor, interactive: true }, body });
    return { ok: true };
  }

  /** A request of the protocol without a line here does not compile. Nobody logs in at our door, so nobody logs out. */
  const CALLS: Readonly<Record<Exclude<AgentRequestMethod, 'logout'>, Call> & Record<string, Call>> = {
    initialize: async ({ params }) => await initialize(params),
    authenticate: async () => {
      throw new Fault('invalid_request', 'this door has no login: the connection is authenticated already');
    },
    'session/new': open,
    'session/load': load,
    'session/resume': resume,
    'session/fork': fork,
    'session/list': async ({ params }) => await workspaces.list(params),
    'session/close': async ({ params }) => await close(params),
    'session/delete': async ({ params }) => await remove(params),
    'session/status': async ({ params }) => {
      const { state } = await sessionOf(params);
      return { status: state === 'CLOSED' || state === 'FAILED' ? 'saved' : 'open' };
    },
    'session/set_title': async ({ params }) => {
      const { id } = await sessionOf(params);
      const title = textOf(params.title);
      if (!title) throw new Fault('invalid_request', 'title must be a text', { param: '/title' });
      await bridge.submit({ kind: 'session.update', actor, body: { session_id: id, summary: title } });
      return { title };
    },
    'session/set_mode': setMode,
    'session/set_config_option': setOption,
    'session/prompt': async ({ params, signal }) => {
      const viewer = viewerOf(params);
      return await givePrompt({ bridge, actor, settings, viewer, log, over: peer.over }, params, signal);
    },
    '_session/steering': async ({ params }) =>
      await giveSteering({ bridge, actor, settings, viewer: viewerOf(params), log, over: peer.over }, params),
    ...(settings.harn !== 'off' && { [HITL_RESPOND]: respond }),
    ...(settings.harn !== 'off' && { [PROVIDER_CATALOG]: providerCatalog }),
  };

  return {
    receive: (text) => peer.receive(text),
    unfinished: () => [...viewers.values()].flatMap(({ open }) => [...open]),
    async close(open) {
      closed = true;
      peer.cut(new Fault('client_closed', 'the client went away'));
      const all = [...viewers.values()];
      viewers.clear();
      for (const viewer of all) {
        if (open === 'cancel') {
          await cancelTasks(bridge, actor, viewer, 'the editor went away', true).catch((cause) =>
            log.warn({ err: cause, session: viewer.sessionId }, 'work could not be stopped'),
          );
        }
        viewer.close();
      }
    },
  };
}

function absent(sessionId: unknown): Fault {
  const id = asText(sessionId).slice(0, 100);
  return new Fault('not_found', `there is no session ${id}`, { details: { sessionId: id } });
}

/** The last event a client received, from our member or from that of Harn's sockets. */
function cursorIn(params: JsonObject): string | undefined {
  return (
    textOf(within(params, '_meta', OURS, 'after')) ??
    textOf(params.lastAckedEventId) ??
    textOf(params.last_acked_event_id) ??
    textOf(params.lastEventId)
  );
}
