/** The configuration of the MCP adapter and its defaults. */
import { ClosedWord, EFFECTS, Fault, NonEmpty, type Static, Type } from '../../src/index.ts';
import { CallerTokens, requireDistinctTokens } from '../../src/transport/outbound/caller-credentials.ts';
import { Exchange } from '../../src/transport/outbound/token-exchange.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
const Texts = Type.Record(Type.String(), Type.String());
const Names = Type.Record(Type.String(), NonEmpty);
const closed = { additionalProperties: false };
const Issuers = Type.Array(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' }), { minItems: 1 });

/** A tool server: `tools.<name>.mcp`. Exactly one of `command` and `url` locates it. */
export const upstreamSchema = Type.Object(
  {
    /** The program and its arguments; started without a shell. */
    command: Optional(Type.Array(NonEmpty, { minItems: 1 })),
    cwd: Optional(NonEmpty),
    /** Beyond a handful that every program needs, it gets these variables and no others. */
    env: Optional(Texts),
    /** Environment variables whose values are secrets, by their names in a vault. */
    env_secrets: Optional(Names),
    url: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
    headers: Optional(Texts),
    /** Headers whose values are secrets, by their names in a vault. */
    header_secrets: Optional(Names),
    /** The name of a secret that is sent as a bearer token. */
    token: Optional(NonEmpty),
    caller_tokens: Optional(CallerTokens),
    exchange: Optional(Exchange),
    /** A client of the server's authorization server; its secret is a name in a vault. */
    oauth: Optional(
      Type.Object(
        {
          client_id: NonEmpty,
          client_secret: NonEmpty,
          scope: Optional(NonEmpty),
          /** Authorization servers that may receive the secret, by their issuer; only the server's own origin when absent. */
          issuers: Optional(Issuers),
        },
        closed,
      ),
    ),
    /** A person signs in at the server with OAuth on the gateway's behalf. */
    sign_in: Optional(
      Type.Object(
        {
          per: Optional(
            Type.Unsafe<'gateway' | 'caller'>({
              type: 'string',
              enum: ['gateway', 'caller'],
              description:
                'gateway: one sign-in serves all callers. caller: each caller signs in, and uses the server with an account of its own.',
            }),
          ),
          /** The vault entry for the tokens of the sign-in; `mcp-<server>` when absent. */
          kept_as: Optional(NonEmpty),
          scope: Optional(NonEmpty),
          /** Authorization servers at which a sign-in is accepted, by their issuer; the one of the first sign-in when absent. */
          issuers: Optional(Issuers),
          /** A client registration made beforehand; its secret, if it has one, is a name in a vault. */
          client_id: Optional(NonEmpty),
          client_secret: Optional(NonEmpty),
          /** A client metadata document that the authorization server reads instead of registering us. */
          client_document: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https://[^\\s/]+/[^\\s]+$' })),
          /** Where people are sent back to; a port of this machine when absent. */
          redirect: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
        },
        closed,
      ),
    ),
    /** The annotations of its tools are believed. */
    trusted: Optional(Type.Boolean()),
    /** The server is another gateway: each call tells it our task and call id, so that the receipts of both name each other. */
    gateway: Optional(Type.Boolean()),
    /** The effects of its tools, by name; they override the server's annotations. */
    effects: Optional(Type.Record(Type.String(), ClosedWord(EFFECTS))),
    /** The era the server speaks, when it is known. */
    era: Optional(ClosedWord(['auto', 'legacy', 'modern'])),
    /** The HTTP transport; `sse` is the transport of 2024-11-05, which `auto` tries when the newer one is missing. */
    transport: Optional(ClosedWord(['auto', 'streamable', 'sse'])),
    share: Optional(
      Type.Boolean({
        description:
          'The sessions of one caller share one program: for a server of the older era that keeps no state per session.',
      }),
    ),
    max_children: Optional(
      Type.Integer({
        minimum: 1,
        description: 'How many programs of this server may run at once; a session that needs one more is refused.',
      }),
    ),
    /** How long the server may take to start and open a session; a program that is installed first needs it. */
    start_timeout_ms: Optional(Ms),
    /** How long a request may go without a frame from the server; progress restarts the timer. */
    timeout_ms: Optional(Ms),
    /** How long a request may take with all the progress in the world. */
    longest_ms: Optional(Ms),
  },
  closed,
);
export type UpstreamConfig = Static<typeof upstreamSchema>;

/** Whether each caller uses the server with credentials of its own. Throws where a common credential could be used in their place. */
export function isPerCaller(config: UpstreamConfig): boolean {
  const { url, headers, header_secrets, caller_tokens, exchange, sign_in } = config;
  const own = { caller_tokens, exchange, sign_in: sign_in?.per === 'caller' ? sign_in : undefined };
  const [first, ...more] = Object.entries(own).flatMap(([name, section]) => (section ? [name] : []));
  if (!first) return false;
  const wrong = (why: string, param = `/${first}`) => new Fault('invalid_request', why, { param });
  if (url === undefined) throw wrong(`${first} is for servers with a url; a program gets its secrets from env_secrets`);
  const common = [
    ...more,
    ...(['token', 'oauth', 'sign_in'] as const).filter((name) => config[name] && name !== first),
  ];
  if (common[0])
    throw wrong(`${first} and ${common[0]} are two credentials for one server: leave one out`, `/${common[0]}`);
  const said = [...Object.keys(headers ?? {}), ...Object.keys(header_secrets ?? {})];
  const { username, password } = new URL(url);
  if (username || password || said.some((name) => name.toLowerCase() === 'authorization')) {
    throw wrong(`${first} gives each caller credentials of its own: leave out the common ones in url and headers`);
  }
  if (caller_tokens) requireDistinctTokens(caller_tokens);
  return true;
}

/** `doors.mcp` */
export const configSchema = Type.Object(
  {
    /** `<path>/<server>` is one server unchanged; `<path>` is all servers, and the agents. */
    path: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^/[A-Za-z0-9_/-]*[A-Za-z0-9_-]$' })),
    /** The workspace of the tasks that record clients' calls; the first workspace the caller sees when absent. */
    workspace: Optional(NonEmpty),
    persona: Optional(NonEmpty),
    /** Servers behind the common address; all of them when absent. */
    servers: Optional(Type.Array(NonEmpty)),
    /** Whether the common address has agents as tools. */
    agents: Optional(Type.Boolean()),
    /** The common address has three tools that search, describe and call the others, as `<path>/_search` always has. */
    tool_search: Optional(Type.Boolean()),
    /** The gateway's address as clients and their authorization servers know it, when it is behind a proxy. */
    public_url: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
    /** Authorization servers that issue tokens for the gateway. */
    authorization_servers: Optional(Type.Array(NonEmpty)),
    /** Also serve the transport of 2024-11-05, at `<address>/sse`, for clients that support no other. */
    sse: Optional(Type.Boolean()),
    body_limit: Optional(Type.Integer({ minimum: 1024 })),
    /** How long a suspended call waits for its client to return with an answer. */
    park_ms: Optional(Ms),
    /** A session that is unused for this long ends. */
    session_idle_ms: Optional(Ms),
    /** A session whose client has held no connection for this long lets go of its servers' programs and closes its questions. */
    session_away_ms: Optional(Ms),
    /** The calls of one caller share a receipt until it has this many, or until no call is made for `receipt_idle_ms`. */
    receipt_calls: Optional(Type.Integer({ minimum: 1 })),
    receipt_idle_ms: Optional(Ms),
  },
  closed,
);
export type McpConfig = Static<typeof configSchema>;

const MIB = 1024 * 1024;
const MINUTE = 60_000;
/** Longer than nearly every answer takes, and shorter than any client waits for a first byte. */
const SILENCE_MS = 1_000;

export function settingsOf(config: McpConfig) {
  return {
    path: config.path ?? '/mcp',
    workspace: config.workspace,
    persona: config.persona,
    servers: config.servers,
    agents: config.agents ?? true,
    toolSearch: config.tool_search ?? false,
    publicUrl: config.public_url?.replace(/\/$/, ''),
    authorizationServers: config.authorization_servers ?? [],
    sse: config.sse ?? false,
    bodyLimit: config.body_limit ?? 4 * MIB,
    suspendMs: config.park_ms ?? 60 * MINUTE,
    sessionIdleMs: config.session_idle_ms ?? 60 * MINUTE,
    sessionAwayMs: config.session_away_ms ?? MINUTE / 2,
    /** An answer that takes longer than this is sent on a stream, so that the connection is not silent. */
    silenceMs: SILENCE_MS,
    receiptCalls: config.receipt_calls ?? 200,
    receiptIdleMs: config.receipt_idle_ms ?? 5 * MINUTE,
  };
}
export type McpSettings = Readonly<ReturnType<typeof settingsOf>>;

export function upstreamSettings(config: UpstreamConfig) {
  return {
    trusted: config.trusted ?? false,
    gateway: config.gateway ?? false,
    effects: config.effects ?? {},
    // The oldest transport is older than the newer era.
    era: config.transport === 'sse' ? 'legacy' : (config.era ?? 'auto'),
    share: config.share ?? false,
    maxChildren: config.max_children,
    startMs: config.start_timeout_ms ?? 2 * MINUTE,
    timeoutMs: config.timeout_ms ?? MINUTE,
    longestMs: config.longest_ms ?? 30 * MINUTE,
  };
}
export type UpstreamSettings = Readonly<ReturnType<typeof upstreamSettings>>;
