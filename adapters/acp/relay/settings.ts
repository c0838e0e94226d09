/** How a relay behaves where that is for its owner to say: in the configuration, and on the command line, which wins. */
import { ClosedWord, Id, type JsonObject, NonEmpty, type Static, Type } from '../../../src/index.ts';
import { THOUGHTS, type Thoughts } from '../thoughts.ts';

const Optional = Type.Optional;
const closed = { additionalProperties: false };

/** `relays.acp` */
export const relaySchema = Type.Object(
  {
    /** Options after which an agent asks no more: people may choose them, or are not offered them. */
    lasting_grants: Optional(ClosedWord(['honour', 'hide'])),
    /** The persona of every session: its autonomy, its tools and its quota hold for the agent. `persona_<name>`. */
    persona: Optional(Id),
    /** What an agent sees of a terminal it may not have. */
    blocked_terminal: Optional(ClosedWord(['exit126', 'error'])),
    /** What it thinks aloud reaches the editor in any case; whether others who watch are shown it, and a summary kept. */
    thoughts: Optional(ClosedWord(THOUGHTS)),
    /** Tool servers offered in every session; ours, to hold its tools too. `token` names a secret. */
    mcp: Optional(
      Type.Array(
        Type.Object(
          {
            name: NonEmpty,
            /** A server that is there, or the command of one to be started: one of the two. */
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
          /** Not a word in the middle of a turn while nobody is asked and nothing is done for it: it hangs. 0: never. */
          stall_ms: Optional(Type.Integer({ minimum: 0 })),
          /** How long it may take to stop after it was told to. */
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
  /** Where the editor started us: the workspace of whatever names none. */
  readonly cwd: string;
  /** Whether people are offered options after which the agent asks no more. */
  readonly standingGrants: 'honour' | 'hide';
  /** What an agent sees of a terminal it may not have. */
  readonly blockedTerminal: 'exit126' | 'error';
  readonly thoughts: Thoughts;
  /** Id of the persona of every session; undefined: rules and autonomy alone. */
  readonly persona?: string | undefined;
  readonly mcpServers: readonly OfferedServer[];
  /** How long an agent may say nothing in the middle of a turn; undefined: for as long as it likes. */
  readonly stallMs: number | undefined;
  readonly cancelMs: number;
}

/** A server in the words of the wire, and how it is told which session of ours its calls belong to. */
export interface OfferedServer {
  readonly http: boolean;
  toWire(sessionId: string): JsonObject;
}

export const PLAIN_SETTINGS: Omit<RelaySettings, 'cwd'> = {
  standingGrants: 'honour',
  blockedTerminal: 'exit126',
  thoughts: 'show',
  mcpServers: [],
  // Builds and tests of an agent's own can be silent for long, and somebody sits in front of it who can stop it.
  stallMs: 30 * 60_000,
  cancelMs: 10_000,
};
