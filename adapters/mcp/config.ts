/** What can be said about this protocol in a configuration, and what holds when nothing is said. */
import { ClosedWord, EFFECTS, type Effect, NonEmpty, type Static, Type } from '../../src/index.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
const Texts = Type.Record(Type.String(), Type.String());
const Names = Type.Record(Type.String(), NonEmpty);
const closed = { additionalProperties: false };
const Issuers = Type.Array(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' }), { minItems: 1 });

/** A server of tools: `tools.<name>.mcp`. Exactly one of `command` and `url` says where it is. */
export const upstreamSchema = Type.Object(
  {
    /** The program and its arguments; no shell reads them. */
    command: Optional(Type.Array(NonEmpty, { minItems: 1 })),
    cwd: Optional(NonEmpty),
    /** Beyond a handful that every program needs, it gets these variables and no others. */
    env: Optional(Texts),
    /** Variables whose values are secrets, by their names in a vault. */
    env_secrets: Optional(Names),
    url: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
    headers: Optional(Texts),
    /** Headers whose values are secrets, by their names in a vault. */
    header_secrets: Optional(Names),
    /** The name of a secret that is sent as a bearer token. */
    token: Optional(NonEmpty),
    /** A client of the server's authorization server; its secret is a name in a vault. */
    oauth: Optional(
      Type.Object(
        {
          client_id: NonEmpty,
          client_secret: NonEmpty,
          scope: Optional(NonEmpty),
          /** Authorization servers that may have the secret, by their issuer; only the server's own origin when absent. */
          issuers: Optional(Issuers),
        },
        closed,
      ),
    ),
    /** A person signs in at the server for us. */
    sign_in: Optional(
      Type.Object(
        {
          /** What we are given is kept in a vault under this name; `mcp-<server>` when absent. */
          kept_as: Optional(NonEmpty),
          scope: Optional(NonEmpty),
          /** Authorization servers that we may be signed in at, by their issuer; the one of the first sign-in when absent. */
          issuers: Optional(Issuers),
          /** A registration made beforehand; its secret, if it has one, is a name in a vault. */
          client_id: Optional(NonEmpty),
          client_secret: Optional(NonEmpty),
          /** A document about us that the authorization server can read instead of registering us. */
          client_document: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https://[^\\s/]+/[^\\s]+$' })),
          /** Where people are sent back to; a port of this machine when absent. */
          redirect: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
        },
        closed,
      ),
    ),
    /** What its tools say about themselves is believed. */
    trusted: Optional(Type.Boolean()),
    /** What its tools do to the world, by name: this house knows better than the server. */
    effects: Optional(Type.Record(Type.String(), ClosedWord(EFFECTS))),
    /** Which era it speaks, when that is known. */
    era: Optional(ClosedWord(['auto', 'legacy', 'modern'])),
    /** How it is spoken to over HTTP; `sse` is the transport of 2024-11-05, which is tried when the other is not there. */
    transport: Optional(ClosedWord(['auto', 'streamable', 'sse'])),
    /** How long it may be silent over a request; progress starts it anew. */
    timeout_ms: Optional(Ms),
    /** How long a request may take with all the progress in the world. */
    longest_ms: Optional(Ms),
  },
  closed,
);
export type UpstreamConfig = Static<typeof upstreamSchema>;

/** `doors.mcp` */
export const configSchema = Type.Object(
  {
    /** `<path>/<server>` is one server as it is; `<path>` is all of them, and the agents. */
    path: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^/[A-Za-z0-9_/-]*[A-Za-z0-9_-]$' })),
    /** Where the calls of clients are kept; the first workspace the caller sees when absent. */
    workspace: Optional(NonEmpty),
    persona: Optional(NonEmpty),
    /** Servers behind the common address; all of them when absent. */
    servers: Optional(Type.Array(NonEmpty)),
    /** Whether work can be given to agents there. */
    agents: Optional(Type.Boolean()),
    /** Our address as clients and their authorization servers know it, when a proxy stands before us. */
    public_url: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
    /** Who issues tokens for us. */
    authorization_servers: Optional(Type.Array(NonEmpty)),
    /** Also the transport of 2024-11-05, at `<address>/sse`, for clients that know no other. */
    sse: Optional(Type.Boolean()),
    body_limit: Optional(Type.Integer({ minimum: 1024 })),
    /** How long a call waits for its client to come back with an answer. */
    park_ms: Optional(Ms),
    /** A session nobody uses for this long is over. */
    session_idle_ms: Optional(Ms),
    /** Calls of one caller come to one receipt until there are this many, or nothing happens for so long. */
    receipt_calls: Optional(Type.Integer({ minimum: 1 })),
    receipt_idle_ms: Optional(Ms),
  },
  closed,
);
export type McpConfig = Static<typeof configSchema>;

export interface McpSettings {
  readonly path: string;
  readonly workspace: string | undefined;
  readonly persona: string | undefined;
  readonly servers: readonly string[] | undefined;
  readonly agents: boolean;
  readonly publicUrl: string | undefined;
  readonly authorizationServers: readonly string[];
  readonly sse: boolean;
  readonly bodyLimit: number;
  readonly parkMs: number;
  readonly sessionIdleMs: number;
  readonly receiptCalls: number;
  readonly receiptIdleMs: number;
}

const MIB = 1024 * 1024;
const MINUTE = 60_000;

export function settingsOf(config: McpConfig): McpSettings {
  return {
    path: config.path ?? '/mcp',
    workspace: config.workspace,
    persona: config.persona,
    servers: config.servers,
    agents: config.agents ?? true,
    publicUrl: config.public_url?.replace(/\/$/, ''),
    authorizationServers: config.authorization_servers ?? [],
    sse: config.sse ?? false,
    bodyLimit: config.body_limit ?? 4 * MIB,
    parkMs: config.park_ms ?? 60 * MINUTE,
    sessionIdleMs: config.session_idle_ms ?? 60 * MINUTE,
    receiptCalls: config.receipt_calls ?? 200,
    receiptIdleMs: config.receipt_idle_ms ?? 5 * MINUTE,
  };
}

export interface UpstreamSettings {
  readonly trusted: boolean;
  readonly effects: Readonly<Record<string, Effect>>;
  readonly era: 'auto' | 'legacy' | 'modern';
  readonly timeoutMs: number;
  readonly longestMs: number;
}

export function upstreamSettings(config: UpstreamConfig): UpstreamSettings {
  return {
    trusted: config.trusted ?? false,
    effects: config.effects ?? {},
    // The oldest transport is older than the newer era.
    era: config.transport === 'sse' ? 'legacy' : (config.era ?? 'auto'),
    timeoutMs: config.timeout_ms ?? MINUTE,
    longestMs: config.longest_ms ?? 30 * MINUTE,
  };
}
