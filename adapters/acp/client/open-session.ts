/** Initializes an agent and opens its session: a previous session is restored where the agent can do that. */
import type { InitializeRequest, NewSessionRequest } from '@agentclientprotocol/sdk';
import { AUTH_REQUIRED, PROTOCOL } from '../../../mappings/acp.ts';
import { Fault, type Json, type JsonObject, VERSION } from '../../../src/index.ts';
import { SESSION_HEADER } from '../../../src/transport/http/session-header.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import type { Peer } from '../../../src/transport/json-rpc/peer.ts';
import type { BackendSettings } from '../config.ts';
import { listOf, objectOf, textOf, within } from '../shapes.ts';
import type { AgentProcessOptions } from './agent-process.ts';

interface Opened {
  readonly sessionId: string;
  readonly agent: JsonObject;
  readonly can: JsonObject;
  readonly remembers: boolean;
}

export async function openSession(peer: Peer, options: AgentProcessOptions, signal: AbortSignal): Promise<Opened> {
  const { settings, deps, cwd, before } = options;
  const greeting = await peer.request('initialize', initializeParams(settings), signal);
  const version = within(greeting, 'protocolVersion');
  if (version !== PROTOCOL) {
    throw new Fault('upstream_unavailable', `the agent ${settings.name} speaks version ${JSON.stringify(version)}`, {
      details: { code: 'unsupported_protocol_version' },
    });
  }
  const can = objectOf(within(greeting, 'agentCapabilities')) ?? {};
  const agent = objectOf(within(greeting, 'agentInfo')) ?? {};
  const mcpServers = await Promise.all(
    settings.mcp
      .filter(() => within(can, 'mcpCapabilities', 'http') === true)
      .map(async ({ name, url, token }) => ({
        type: 'http' as const,
        name,
        url,
        headers: [
          ...(token ? [{ name: 'Authorization', value: `Bearer ${await deps.secret(token)}` }] : []),
          { name: SESSION_HEADER, value: options.session },
        ],
      })),
  );
  const where = { cwd, mcpServers } satisfies NewSessionRequest;

  async function again(): Promise<Json | undefined> {
    if (!before) return undefined;
    // Resuming replays nothing, which is enough; loading is for agents that cannot resume.
    const method = within(can, 'sessionCapabilities', 'resume') ? 'session/resume' : 'session/load';
    if (method === 'session/load' && can.loadSession !== true) return undefined;
    try {
      return (await peer.request(method, { sessionId: before, ...where }, signal)) ?? {};
    } catch (cause) {
      if (!(cause instanceof RpcError) || cause.code === AUTH_REQUIRED) throw cause;
      deps.log.warn({ agent: settings.name, code: cause.code }, 'an agent does not know its session any more');
      return undefined;
    }
  }

  async function open(): Promise<Opened & { readonly result: Json }> {
    const found = await again();
    if (found !== undefined && before) return { sessionId: before, agent, can, remembers: true, result: found };
    const result = await peer.request('session/new', where, signal);
    const sessionId = textOf(within(result, 'sessionId'));
    if (!sessionId) throw new Fault('upstream_unavailable', 'the agent opened a session without an id');
    return { sessionId, agent, can, remembers: false, result };
  }

  /** Once, and only with the configured login method. */
  async function logIn(cause: unknown): Promise<Opened & { readonly result: Json }> {
    if (!(cause instanceof RpcError) || cause.code !== AUTH_REQUIRED) throw cause;
    const methods = listOf(within(greeting, 'authMethods')).flatMap((method) => textOf(within(method, 'id')) ?? []);
    const { authMethod } = settings;
    if (!authMethod || !methods.includes(authMethod)) {
      const how = methods.length > 0 ? `; it offers ${methods.join(', ')}` : '';
      throw new Fault('upstream_unavailable', `the agent ${settings.name} wants a login: set auth_method${how}`, {
        details: { code: 'upstream_auth' },
      });
    }
    await peer.request('authenticate', { methodId: authMethod }, signal);
    return await open();
  }

  const { result, ...opened } = await open().catch(logIn);
  if (settings.mode && modesOf(result).includes(settings.mode)) {
    await peer.request('session/set_mode', { sessionId: opened.sessionId, modeId: settings.mode }, signal);
  } else if (settings.mode) {
    throw new Fault('upstream_unavailable', `the agent ${settings.name} has no mode ${settings.mode}`);
  }
  return opened;
}

/** The capabilities we declare. File and terminal access go through the gate only where they are enabled here. */
function clientCapabilities({ fs, terminal }: BackendSettings) {
  return {
    fs: { readTextFile: fs, writeTextFile: fs },
    terminal,
    elicitation: { form: {} },
    session: { notices: {}, compaction: {} },
    _meta: { harn: {} },
  } satisfies InitializeRequest['clientCapabilities'];
}

function initializeParams(settings: BackendSettings): JsonObject {
  return {
    protocolVersion: PROTOCOL,
    clientCapabilities: clientCapabilities(settings),
    clientInfo: { name: 'tollbridge', title: 'Tollbridge', version: VERSION },
  } satisfies InitializeRequest;
}

function modesOf(result: Json): readonly string[] {
  const modes = within(result, 'modes', 'availableModes') ?? within(result, 'modes');
  return listOf(modes).flatMap((mode) => textOf(within(mode, 'id')) ?? []);
}
