/**
 * One agent process, kept for one session: started, greeted, given its session, spoken to, and ended with everything it
 * started. Whoever works sits at it; what comes while nobody does is late.
 */

import { PROVIDER_CATALOG } from '../../mappings/acp-harn.ts';
import { asText, Fault, type Json, type JsonObject } from '../../src/index.ts';
import { type Child, startChild } from '../../src/wire/child.ts';
import { lineWriter, readLines } from '../../src/wire/ndjson.ts';
import { type BackendDeps, type BackendSettings, LINE_LIMIT } from './config.ts';
import { environmentOf } from './environment.ts';
import { offersCatalog } from './harn.ts';
import { NOTHING_SPENT, type Spent } from './meter.ts';
import { type Asked, createPeer, type Peer, RpcError } from './peer.ts';
import { openSession } from './seat-session.ts';
import { lastPath, objectOf, textOf } from './shapes.ts';

/** Whoever works with the agent at the moment. */
export interface Sitter {
  update(update: JsonObject): Promise<void>;
  notification(method: string, params: JsonObject): Promise<void>;
  request(asked: Asked): Promise<Json>;
}

export interface Seat {
  readonly peer: Peer;
  /** The agent's own name for the session. */
  readonly sessionId: string;
  readonly cwd: string;
  readonly agent: JsonObject;
  /** The agent as it names itself, or the program that was started. */
  readonly agentName: string;
  /** What it said it can do. */
  readonly can: JsonObject;
  /** It knows what was said before. */
  remembers: boolean;
  /** What its catalog of providers says, when it has one. */
  readonly catalog: Json | undefined;
  /** Seconds of silence are counted from here. */
  readonly heardAt: number;
  spent: Spent;
  told: boolean;
  /** Updates that came when nobody worked. */
  late: JsonObject[];
  sit(sitter: Sitter): { leave(): void };
  /** Whoever waits for it hears why. */
  close(why?: Fault): Promise<void>;
}

export interface SeatOptions {
  readonly settings: BackendSettings;
  readonly deps: BackendDeps;
  readonly cwd: string;
  /** The session of ours it works in. */
  readonly session: string;
  /** The session it had before it was started anew. */
  readonly before: string | undefined;
  readonly signal: AbortSignal;
  /** How a program is started; another way stands for the program. */
  readonly start?: typeof startChild;
}

const MOST_LATE = 50;
/** What is still in the pipe of an agent that has gone is read, but not for long. */
const LAST_WORDS_MS = 500;

export async function openSeat(options: SeatOptions): Promise<Seat> {
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

async function greet(child: Child, options: SeatOptions): Promise<Seat> {
  const { settings, deps, cwd } = options;
  const write = lineWriter(child.stdin);
  let sitter: Sitter | undefined;
  let heardAt = performance.now();
  const late: JsonObject[] = [];

  const peer = createPeer({
    send: write,
    log: deps.log,
    other: 'agent',
    strict: false,
    async notification(method, params) {
      if (method === 'session/update') {
        const update = objectOf(params.update);
        if (!update) return;
        if (sitter) await sitter.update(update);
        else if (late.length < MOST_LATE) late.push(update);
      } else await sitter?.notification(method, params);
    },
    async request(asked) {
      // Harn agents wait a minute for this, whoever works.
      if (asked.method === 'host/capabilities') return {};
      if (!sitter) throw new RpcError({ code: -32600, message: 'nobody works with this agent at the moment' });
      return await sitter.request(asked);
    },
  });

  const reading = (async () => {
    const skipped = (why: string) => deps.log.warn({ agent: settings.name, why }, 'a line of an agent was skipped');
    for await (const line of readLines(child.stdout, { limit: LINE_LIMIT, skipped })) {
      heardAt = performance.now();
      await peer.hear(line);
    }
  })().catch((cause) => deps.log.warn({ err: cause, agent: settings.name }, 'an agent can no longer be heard'));
  child.exited.then(async ({ code, signal }) => {
    await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS).unref())]);
    const how = signal ? `was ended by ${signal}` : `exited with ${code}`;
    peer.cut(new Fault('upstream_unavailable', `the agent ${settings.name} ${how}`));
  });

  const patience = AbortSignal.any([options.signal, AbortSignal.timeout(settings.startMs)]);
  const opened = await openSession(peer, options, patience).catch((cause) => {
    if (!patience.aborted || options.signal.aborted) throw cause;
    throw new Fault('upstream_unavailable', `the agent ${settings.name} did not open a session in time`);
  });
  // What it replayed while it loaded was written down when it was said; how it stands now is news.
  const standing = late.filter(({ sessionUpdate }) => isStanding(sessionUpdate));
  late.splice(0, late.length, ...standing);
  const catalog = offersCatalog(opened.can)
    ? await peer.request(PROVIDER_CATALOG, {}, patience).catch(() => undefined)
    : undefined;

  let closing: Promise<void> | undefined;
  return {
    ...opened,
    agentName: textOf(opened.agent.name) ?? lastPath(settings.command[0] ?? settings.name),
    peer,
    cwd,
    catalog,
    get heardAt() {
      return heardAt;
    },
    spent: NOTHING_SPENT,
    told: false,
    late,
    sit(next) {
      sitter = next;
      heardAt = performance.now();
      return {
        leave() {
          if (sitter === next) sitter = undefined;
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

/** Tells how things are rather than what was done, so it is true whenever it is heard. */
export function isStanding(kind: unknown): boolean {
  return STANDING.has(asText(kind));
}
