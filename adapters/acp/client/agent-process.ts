/**
 * One agent process for one session: started, initialized, given its session, prompted, and ended with everything it started.
 * The handler of the running task is attached to it; updates that arrive while no handler is attached are late.
 */

import { HOST_CAPABILITIES, PROVIDER_CATALOG } from '../../../mappings/acp-harn.ts';
import { anySignal, asText, Fault, type Json, type JsonObject } from '../../../src/index.ts';
import { RpcError } from '../../../src/transport/json-rpc/messages.ts';
import type { Asked, Peer } from '../../../src/transport/json-rpc/peer.ts';
import { lineWriter, readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { type Child, startChild } from '../../../src/transport/process/child.ts';
import { type BackendDeps, type BackendSettings, LINE_LIMIT } from '../config.ts';
import { hasToolCatalog } from '../harn.ts';
import { createAcpPeer } from '../peer.ts';
import { lastPath, objectOf, textOf } from '../shapes.ts';
import { environmentOf } from './environment.ts';
import { openSession } from './open-session.ts';
import { NOTHING_SPENT, type Spent } from './usage.ts';

/** The handler of the task that uses the agent at the moment. */
export interface AgentHandler {
  update(update: JsonObject): Promise<void>;
  notification(method: string, params: JsonObject): Promise<void>;
  request(asked: Asked): Promise<Json>;
}

export interface AgentProcess {
  readonly peer: Peer;
  /** The agent's own session id. */
  readonly sessionId: string;
  readonly cwd: string;
  readonly agent: JsonObject;
  /** The agent's name for itself, or the program that was started. */
  readonly agentName: string;
  /** The capabilities it declared. */
  readonly can: JsonObject;
  /** It knows the conversation so far. */
  remembers: boolean;
  /** Its provider catalog, when it has one. */
  readonly catalog: Json | undefined;
  /** Refusals whose reasons it has not been told. */
  readonly untold: string[];
  /** When the agent last sent anything; silence is measured from here. */
  readonly receivedAt: number;
  spent: Spent;
  introduced: boolean;
  /** Updates that arrived while no handler was attached. */
  late: JsonObject[];
  /** Attaches a handler. `late` receives updates about its work after it has detached, until the next handler is attached. */
  attach(handler: AgentHandler): { leave(late: (update: JsonObject) => Promise<void>): void };
  /** Pending requests fail with `why`. */
  close(why?: Fault): Promise<void>;
}

export interface AgentProcessOptions {
  readonly settings: BackendSettings;
  readonly deps: BackendDeps;
  readonly cwd: string;
  /** Our session it works in. */
  readonly session: string;
  /** Its session id before it was restarted. */
  readonly before: string | undefined;
  readonly signal: AbortSignal;
  /** Starts the program; a replacement stands in for the program. */
  readonly start?: typeof startChild;
}

const MOST_LATE = 50;
/** The output left in the pipe of an exited agent is read, but not for long. */
const LAST_WORDS_MS = 500;
const LONGEST_LAST_WORDS_MS = 30_000;

export async function startAgentProcess(options: AgentProcessOptions): Promise<AgentProcess> {
  const { settings, deps, cwd, start = startChild } = options;
  const env = await environmentOf(settings, deps);
  const child = await start({
    command: settings.command,
    cwd,
    env,
    onStderr: (line) => deps.log.info({ agent: settings.name, line }, 'an agent wrote to its standard error'),
  });
  try {
    return await greet(child, options);
  } catch (cause) {
    await child.close(settings.graceMs);
    throw cause;
  }
}

async function greet(child: Child, options: AgentProcessOptions): Promise<AgentProcess> {
  const { settings, deps, cwd } = options;
  const write = lineWriter(child.stdin);
  let handler: AgentHandler | undefined;
  let before: ((update: JsonObject) => Promise<void>) | undefined;
  let taking = false;
  let receivedAt = performance.now();
  const late: JsonObject[] = [];

  const peer = createAcpPeer({
    send: write,
    log: deps.log,
    other: 'agent',
    strict: false,
    async notification(method, params) {
      if (method === 'session/update') {
        const update = objectOf(params.update);
        if (!update) return;
        if (handler) await handler.update(update);
        else {
          if (late.length < MOST_LATE) late.push(update);
          await before?.(update);
        }
      } else await handler?.notification(method, params);
    },
    async request(asked) {
      // Harn agents wait a minute for this, whether or not a task runs.
      if (asked.method === 'host/capabilities') return settings.terminal ? HOST_CAPABILITIES : {};
      if (!handler) throw new RpcError({ code: -32600, message: 'no task of this agent is running' });
      return await handler.request(asked);
    },
  });

  const reader = (async () => {
    const skipped = (why: string) => deps.log.warn({ agent: settings.name, why }, 'a line of an agent was skipped');
    for await (const line of readLines(child.stdout, { limit: LINE_LIMIT, skipped })) {
      receivedAt = performance.now();
      taking = true;
      await peer.receive(line).finally(() => {
        taking = false;
      });
    }
  })().catch((cause) => deps.log.warn({ err: cause, agent: settings.name }, 'reading from an agent failed'));
  /** Reads the output of an exited agent to the end, unless a child of it holds the pipe open and is silent. */
  async function drained(): Promise<void> {
    const until = performance.now() + LONGEST_LAST_WORDS_MS;
    for (let last = Number.NaN; (last !== receivedAt || taking) && performance.now() < until; ) {
      last = receivedAt;
      if (await Promise.race([reader.then(() => true), soon()])) return;
    }
  }
  const soon = () => new Promise<false>((resolve) => setTimeout(resolve, LAST_WORDS_MS, false).unref());
  reader.then(async () => {
    if ((await Promise.race([child.exited, soon()])) !== false) return;
    // The process lives but its output is closed: no pending request will be answered.
    peer.cut(new Fault('upstream_unavailable', `the agent ${settings.name} closed its output`));
  });
  child.exited.then(async ({ code, signal }) => {
    await drained();
    const how = signal ? `was ended by ${signal}` : `exited with ${code}`;
    peer.cut(new Fault('upstream_unavailable', `the agent ${settings.name} ${how}`));
  });

  const deadline = anySignal([options.signal, AbortSignal.timeout(settings.startMs)]);
  const opened = await openSession(peer, options, deadline).catch((cause) => {
    if (!deadline.aborted || options.signal.aborted) throw cause;
    throw new Fault('upstream_unavailable', `the agent ${settings.name} did not open a session in time`);
  });
  // Updates replayed during the load are already in the log; the current state is new.
  const standing = late.filter(({ sessionUpdate }) => isStanding(sessionUpdate));
  late.splice(0, late.length, ...standing);
  const catalog = hasToolCatalog(opened.can)
    ? await peer.request(PROVIDER_CATALOG, {}, deadline).catch(() => undefined)
    : undefined;

  let closing: Promise<void> | undefined;
  return {
    ...opened,
    agentName: textOf(opened.agent.name) ?? lastPath(settings.command[0] ?? settings.name),
    peer,
    cwd,
    catalog,
    get receivedAt() {
      return receivedAt;
    },
    spent: NOTHING_SPENT,
    untold: [],
    introduced: false,
    late,
    attach(next) {
      handler = next;
      before = undefined;
      receivedAt = performance.now();
      return {
        leave(late) {
          if (handler !== next) return;
          handler = undefined;
          before = late;
        },
      };
    },
    close(why = new Fault('upstream_unavailable', `the agent ${settings.name} was ended`)) {
      peer.cut(why);
      closing ??= child.close(settings.graceMs);
      return closing;
    },
  };
}

const STANDING = new Set([
  'available_commands_update',
  'current_mode_update',
  'config_option_update',
  'session_info_update',
]);

/** Describes a state rather than an action, so it is valid whenever it arrives. */
export function isStanding(kind: unknown): boolean {
  return STANDING.has(asText(kind));
}
