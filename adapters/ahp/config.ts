/** What can be said about this protocol in a configuration, and what holds when nothing is said. */
import { agentProfiles, SOFT_WORDS, type SoftWord } from '../../mappings/ahp.ts';
import { ClosedWord, EFFECTS, type Effect, NonEmpty, type Static, Type } from '../../src/index.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
const closed = { additionalProperties: false };

/** An outside harness that decides for us. Exactly one of `url`, `socket` and `command` says where it is. */
export const UpstreamShape = Type.Object(
  {
    name: Optional(NonEmpty),
    /** `http(s)://` or `ws(s)://`. */
    url: Optional(NonEmpty),
    socket: Optional(NonEmpty),
    /** Program and arguments; it is started and spoken to over its input and output. */
    command: Optional(Type.Array(NonEmpty, { minItems: 1 })),
    /** Variables for that program; beyond these it gets the few every program needs. */
    env: Optional(Type.Record(Type.String(), Type.String())),
    /** Names of secrets in a vault. */
    api_key: Optional(NonEmpty),
    token: Optional(NonEmpty),
    timeout_ms: Optional(Ms),
    /** What silence, nonsense and absence mean. `ignore` is for harnesses that only advise. */
    on_failure: Optional(ClosedWord(['block', 'escalate', 'ignore'])),
    /** Some harnesses say `defer` when a person is looking at it. */
    defer_means: Optional(ClosedWord(['retry', 'approval'])),
    /** Notifications that may wait to be sent. */
    queue: Optional(Type.Integer({ minimum: 1 })),
    /** It keeps news in a batch from whatever decides; the reference harness does not, so news goes one by one. */
    batches_news: Optional(Type.Boolean()),
    hop: Optional(NonEmpty),
  },
  closed,
);
export type UpstreamConfig = Static<typeof UpstreamShape>;

export const configSchema = Type.Object(
  {
    name: Optional(NonEmpty),
    path: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^/[A-Za-z0-9_/-]*[A-Za-z0-9_-]$' })),
    /** Also listen on a Unix socket here. Whoever may open it is `agent:local`. */
    socket: Optional(NonEmpty),
    /** Where sessions of agents are kept; the first workspace the caller sees when absent. */
    workspace: Optional(NonEmpty),
    persona: Optional(NonEmpty),
    /** What we say we answer within. The reply to a question people are asked is held two seconds less. */
    timeout_ms: Optional(Type.Integer({ minimum: 100 })),
    batch_size: Optional(Type.Integer({ minimum: 1 })),
    max_depth: Optional(Type.Integer({ minimum: 0 })),
    /** The answer to a question nobody answered within that time. `escalate` only for agents that honour it. */
    unanswered: Optional(ClosedWord(['block', 'escalate'])),
    /** Words beside `allow` and `block` that agents at this door obey; any other becomes a `block` with the reason. */
    honours: Optional(Type.Array(ClosedWord(SOFT_WORDS))),
    /** The same for agents that name this framework in their handshake, instead of what is said for all. */
    agents: Optional(Type.Record(Type.String(), Type.Object({ honours: Type.Array(ClosedWord(SOFT_WORDS)) }, closed))),
    /** Refuse events of agents that did not shake hands. */
    strict_handshake: Optional(Type.Boolean()),
    /** What tools do to the world, by name: this house knows better than a list of well-known names. */
    effects: Optional(Type.Record(Type.String(), ClosedWord(EFFECTS))),
    /** How long a run that said it was done may still tell how its checks came out. */
    settle_ms: Optional(Type.Integer({ minimum: 0 })),
    /** How long nothing may be heard of an agent before its work counts as left and is ended. */
    away_ms: Optional(Ms),
    /** Longest body over HTTP, and longest line or frame elsewhere, in bytes. */
    body_limit: Optional(Type.Integer({ minimum: 1024 })),
    line_limit: Optional(Type.Integer({ minimum: 1024 })),
    /** Our name in a chain of harnesses; one that meets it again is going round in circles. */
    hop: Optional(NonEmpty),
  },
  closed,
);
export type AhpConfig = Static<typeof configSchema>;

export interface AhpSettings {
  readonly name: string;
  readonly path: string;
  readonly socket: string | undefined;
  readonly workspace: string | undefined;
  readonly persona: string | undefined;
  readonly timeoutMs: number;
  /** From the arrival of a question to its answer, whatever that is. */
  readonly holdMs: number;
  readonly batchSize: number;
  readonly maxDepth: number;
  readonly unanswered: 'block' | 'escalate';
  readonly honours: readonly SoftWord[];
  readonly agents: ReadonlyMap<string, readonly SoftWord[]>;
  readonly strictHandshake: boolean;
  readonly effects: Readonly<Record<string, Effect>>;
  readonly settleMs: number;
  readonly awayMs: number;
  readonly bodyLimit: number;
  readonly lineLimit: number;
  readonly hop: string;
}

/** Clients of this protocol hang up after ten seconds, and some of them then go ahead. */
const CLIENT_PATIENCE_MS = 10_000;
const MARGIN_MS = 2_000;
const DAY_MS = 24 * 60 * 60_000;
const MIB = 1024 * 1024;

export function settingsOf(config: AhpConfig): AhpSettings {
  const timeoutMs = config.timeout_ms ?? CLIENT_PATIENCE_MS;
  const least = Math.min(timeoutMs, CLIENT_PATIENCE_MS);
  return {
    name: config.name ?? 'tollbridge',
    path: config.path ?? '/ahp',
    socket: config.socket,
    workspace: config.workspace,
    persona: config.persona,
    timeoutMs,
    // Of a short patience half is kept for the way back.
    holdMs: Math.max(least - MARGIN_MS, Math.floor(least / 2)),
    batchSize: config.batch_size ?? 100,
    maxDepth: config.max_depth ?? 10,
    unanswered: config.unanswered ?? 'block',
    honours: config.honours ?? [],
    agents: new Map(Object.entries(config.agents ?? {}).map(([name, { honours }]) => [name, honours])),
    strictHandshake: config.strict_handshake ?? false,
    effects: config.effects ?? {},
    settleMs: config.settle_ms ?? 500,
    awayMs: config.away_ms ?? DAY_MS,
    bodyLimit: config.body_limit ?? 2 * MIB,
    lineLimit: config.line_limit ?? 4 * MIB,
    hop: config.hop ?? `tollbridge@${process.pid}`,
  };
}

/** The soft words this agent is trusted to obey. Its framework is its own claim: a known one can only take words away. */
export function honouredBy(settings: AhpSettings, framework: string | undefined): ReadonlySet<SoftWord> {
  const named = framework === undefined ? undefined : settings.agents.get(framework);
  const profile = agentProfiles.find((row) => row.framework === framework);
  const words = named ?? settings.honours.filter((word) => profile === undefined || profile.honours.includes(word));
  return new Set(words.filter((word) => word !== 'escalate' || settings.unanswered === 'escalate'));
}
