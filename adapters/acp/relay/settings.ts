/** The settings of a relay: its section of the configuration, in which the command line has put its own flags, and the defaults. */
import { ClosedWord, type Deps, Fault, Id, type JsonObject, NonEmpty, type Static, Type } from '../../../src/index.ts';
import { SESSION_HEADER, SESSION_VARIABLE } from '../../../src/transport/http/session-header.ts';
import { THOUGHTS, type Thoughts } from '../server/render-thoughts.ts';

const Optional = Type.Optional;
const closed = { additionalProperties: false };

/** `relays.acp` */
export const relaySchema = Type.Object(
  {
    /** Options after which an agent asks no more: offered to people, or hidden from them. */
    lasting_grants: Optional(ClosedWord(['honour', 'hide'])),
    /** The persona of every session: its autonomy, its tools and its quota apply to the agent. `persona_<name>`. */
    persona: Optional(Id),
    /** What an agent sees of a denied terminal. */
    blocked_terminal: Optional(ClosedWord(['exit126', 'error'])),
    /**
     * What the relay adds to frames that it forwards: that sessions can be loaded and resumed, and to prompts the reasons of refusals and the
     * conversation that the agent has forgotten. `off`: these frames arrive as they left, and sessions are the agent's to restore.
     */
    additions: Optional(ClosedWord(['on', 'off'])),
    /** Reasoning always reaches the editor; this says whether other watchers see it, and whether a summary is stored. */
    thoughts: Optional(ClosedWord(THOUGHTS)),
    /** MCP servers added to every session; ours, so that its tools are held too. `token` names a secret. */
    mcp: Optional(
      Type.Array(
        Type.Object(
          {
            name: NonEmpty,
            /** A running server, or the command that starts one: exactly one of the two. */
            url: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
            command: Optional(Type.Array(NonEmpty, { minItems: 1 })),
            token: Optional(NonEmpty),
          },
          closed,
        ),
      ),
    ),
    timeouts: Optional(
      Type.Object(
        {
          /**
           * Silence for this time in the middle of a turn, with no open question and no act in progress, counts as stalled. 0:
           * never.
           */
          stall_ms: Optional(Type.Integer({ minimum: 0 })),
          /** How long it may take to stop after a cancel. */
          cancel_ms: Optional(Type.Integer({ minimum: 1 })),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type RelayConfig = Static<typeof relaySchema>;

export interface RelaySettings {
  /** The directory the editor started us in: the workspace of requests that name none. */
  readonly cwd: string;
  /** Whether people are offered options after which the agent asks no more. */
  readonly standingGrants: 'honour' | 'hide';
  /** What an agent sees of a denied terminal. */
  readonly blockedTerminal: 'exit126' | 'error';
  readonly additions: boolean;
  readonly thoughts: Thoughts;
  /** Id of the persona of every session; undefined: rules and autonomy alone. */
  readonly persona?: string | undefined;
  readonly mcpServers: readonly GatewayToolServer[];
  /** How long an agent may be silent in the middle of a turn; undefined: indefinitely. */
  readonly stallMs: number | undefined;
  readonly cancelMs: number;
}

/** A server in the words of the wire, and how it learns which of our sessions its calls belong to. */
export interface GatewayToolServer {
  readonly http: boolean;
  toWire(sessionId: string): JsonObject;
}

export function relaySettings(config: RelayConfig): RelaySettings {
  const { lasting_grants, blocked_terminal, additions, thoughts, persona, timeouts = {} } = config;
  for (const [at, { url, command }] of (config.mcp ?? []).entries()) {
    if ((url === undefined) === (command === undefined))
      throw new Fault('invalid_request', 'a server has a url or a command', { param: `/mcp/${at}` });
  }
  const stallMs = timeouts.stall_ms ?? PLAIN_SETTINGS.stallMs;
  return {
    cwd: process.cwd(),
    standingGrants: lasting_grants ?? PLAIN_SETTINGS.standingGrants,
    blockedTerminal: blocked_terminal ?? PLAIN_SETTINGS.blockedTerminal,
    additions: additions === undefined ? PLAIN_SETTINGS.additions : additions === 'on',
    thoughts: thoughts ?? PLAIN_SETTINGS.thoughts,
    ...(persona && { persona }),
    mcpServers: [],
    stallMs: stallMs === 0 ? undefined : stallMs,
    cancelMs: timeouts.cancel_ms ?? PLAIN_SETTINGS.cancelMs,
  };
}

/** The MCP servers of the section, with their tokens. */
export async function gatewayToolServers(
  { mcp = [] }: RelayConfig,
  secret: Deps['secret'],
): Promise<readonly GatewayToolServer[]> {
  return await Promise.all(
    mcp.map(async ({ name, url, command = [], token }): Promise<GatewayToolServer> => {
      if (url === undefined) {
        const [program = '', ...args] = command;
        const toWire = (value: string) => ({ name, command: program, args, env: [{ name: SESSION_VARIABLE, value }] });
        return { http: false, toWire };
      }
      const authorization = token ? [{ name: 'Authorization', value: `Bearer ${await secret(token)}` }] : [];
      const headers = (value: string) => [...authorization, { name: SESSION_HEADER, value }];
      return { http: true, toWire: (value) => ({ type: 'http', name, url, headers: headers(value) }) };
    }),
  );
}

export const PLAIN_SETTINGS: Omit<RelaySettings, 'cwd'> = {
  standingGrants: 'honour',
  blockedTerminal: 'exit126',
  additions: true,
  thoughts: 'show',
  mcpServers: [],
  // An agent's own builds and tests can be silent for long, and the person in front of the editor can cancel.
  stallMs: 30 * 60_000,
  cancelMs: 10_000,
};
