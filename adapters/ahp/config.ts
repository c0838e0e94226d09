/** The configuration of AHP doors and harnesses, and its defaults. */
import { agentProfiles, SOFT_WORDS, type SoftWord } from '../../mappings/ahp.ts';
import { ClosedWord, EFFECTS, NonEmpty, type Static, Type } from '../../src/index.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
const closed = { additionalProperties: false };

/** An outside harness that decides for us. Exactly one of `url`, `socket` and `command` locates it. */
export const UpstreamShape = Type.Object(
  {
    name: Optional(NonEmpty),
    /** `http(s)://` or `ws(s)://`. */
    url: Optional(NonEmpty),
    socket: Optional(NonEmpty),
    /** Program and arguments; it is started and used over its stdin and stdout. */
    command: Optional(Type.Array(NonEmpty, { minItems: 1 })),
    /** Variables for that program; beyond these it gets the few every program needs. */
    env: Optional(Type.Record(Type.String(), Type.String())),
    /** Names of secrets in a vault. */
    api_key: Optional(NonEmpty),
    token: Optional(NonEmpty),
    timeout_ms: Optional(Ms),
    /** The decision on a timeout, an invalid response or an unreachable harness. `ignore` is for harnesses that only advise. */
    on_failure: Optional(ClosedWord(['block', 'escalate', 'ignore'])),
    /** Some harnesses say `defer` when a person is looking at the act. */
    defer_means: Optional(ClosedWord(['retry', 'approval'])),
    /** The most notifications that may wait to be sent. */
    queue: Optional(Type.Integer({ minimum: 1 })),
    /** It keeps notifications in a batch away from its decisions; the reference harness does not, so they are sent one by one. */
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
    /** Also listen on this Unix socket. A client that may open it is `agent:local`. */
    socket: Optional(NonEmpty),
    /** The workspace of agents' sessions; the first one the caller can see when absent. */
    workspace: Optional(NonEmpty),
    persona: Optional(NonEmpty),
    /** The response time we declare. A question that waits for people is answered two seconds earlier, and after eight at the latest. */
    timeout_ms: Optional(Type.Integer({ minimum: 100 })),
    batch_size: Optional(Type.Integer({ minimum: 1 })),
    max_depth: Optional(Type.Integer({ minimum: 0 })),
    /** The decision on a question that is not answered in time. `escalate` only for agents that honour it. */
    unanswered: Optional(ClosedWord(['block', 'escalate'])),
    /** Decisions beside `allow` and `block` that agents at this door obey; any other becomes a `block` with the reason. */
    honours: Optional(Type.Array(ClosedWord(SOFT_WORDS))),
    /** The same for agents that name this framework in their handshake; replaces the general setting. */
    agents: Optional(Type.Record(Type.String(), Type.Object({ honours: Type.Array(ClosedWord(SOFT_WORDS)) }, closed))),
    /** Refuse events of agents without a handshake. */
    strict_handshake: Optional(Type.Boolean()),
    /** Effects of tools, by name: they override the list of well-known tools. */
    effects: Optional(Type.Record(Type.String(), ClosedWord(EFFECTS))),
    /** How long a completed run may still report the results of its checks. */
    settle_ms: Optional(Type.Integer({ minimum: 0 })),
    /** How long an agent may be silent before its work counts as abandoned and is ended. */
    away_ms: Optional(Ms),
    /** Longest body over HTTP, and longest line or frame elsewhere, in bytes. */
    body_limit: Optional(Type.Integer({ minimum: 1024 })),
    line_limit: Optional(Type.Integer({ minimum: 1024 })),
    /** Our name in a chain of harnesses; a message that already contains it is in a loop. */
    hop: Optional(NonEmpty),
  },
  closed,
);
export type AhpConfig = Static<typeof configSchema>;

/** Clients of this protocol disconnect after ten seconds, whatever a harness declares, and some of them then proceed. */
const CLIENT_TIMEOUT_MS = 10_000;
const MARGIN_MS = 2_000;
const DAY_MS = 24 * 60 * 60_000;
const MIB = 1024 * 1024;

export function settingsOf(config: AhpConfig) {
  const timeoutMs = config.timeout_ms ?? CLIENT_TIMEOUT_MS;
  const least = Math.min(timeoutMs, CLIENT_TIMEOUT_MS);
  return {
    name: config.name ?? 'tollbridge',
    path: config.path ?? '/ahp',
    socket: config.socket,
    workspace: config.workspace,
    persona: config.persona,
    timeoutMs,
    // Of a short timeout half is kept for the way back.
    /** From the arrival of a question to its answer. */
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
export type AhpSettings = Readonly<ReturnType<typeof settingsOf>>;

/** The soft decisions this agent is trusted to obey. Its framework is its own claim: a known one can only remove some. */
export function honouredBy(settings: AhpSettings, framework: string | undefined): ReadonlySet<SoftWord> {
  const named = framework === undefined ? undefined : settings.agents.get(framework);
  const profile = agentProfiles.find((row) => row.framework === framework);
  const words = named ?? settings.honours.filter((word) => profile === undefined || profile.honours.includes(word));
  return new Set(words.filter((word) => word !== 'escalate' || settings.unanswered === 'escalate'));
}
