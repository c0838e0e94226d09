/** The configuration of an A2A peer, and its defaults. */
import { ClosedWord, type Deps, Fault, NonEmpty, OpenObject, type Static, Type } from '../../../src/index.ts';
import { isLoopback } from '../../../src/transport/http/origin.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
export const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const;

export const backendSchema = Type.Object(
  {
    /** The agent's base URL: its card is below it. */
    url: NonEmpty,
    /** The secret that holds its token. Sent to the origin of `url`, and to those allowed below, and nowhere else. */
    secret: Optional(NonEmpty),
    /** Further origins its card may refer to. For gRPC: `host:port`. */
    allow_origins: Optional(Type.Array(NonEmpty)),
    /** Public keys (JWK); with any, a card that none of them signed is refused. */
    keys: Optional(Type.Array(OpenObject)),
    /** The binding to use; the card's order when absent. */
    binding: Optional(ClosedWord(BINDINGS)),
    /** Plain http to another machine, where anyone on the way can read the token. */
    insecure: Optional(Type.Boolean()),
    description: Optional(Type.String()),
    artifact_limit: Optional(Type.Integer({ minimum: 0 })),
    /** The largest total size, in bytes, of files sent inside a message. */
    file_limit: Optional(Type.Integer({ minimum: 0 })),
    /** The URL at which a peer that cannot stream may notify us of a changed task. Without it, the peer is polled. */
    push: Optional(Type.Object({ public_url: NonEmpty }, { additionalProperties: false })),
    timeouts: Optional(
      Type.Object(
        {
          /** Time limit of a request that is not a stream. */
          request_ms: Optional(Ms),
          /** The interval between two polls of a quiet task. */
          poll_ms: Optional(Ms),
          /** The same, where the peer has agreed to send notifications. */
          push_poll_ms: Optional(Ms),
          /** How long the peer may be unreachable, or in an unknown state, before the task fails. */
          silence_ms: Optional(Ms),
          /** How long the peer may take to stop after a cancel. */
          cancel_ms: Optional(Ms),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
export type A2aBackendConfig = Static<typeof backendSchema>;
export type BackendDeps = Pick<Deps, 'log' | 'clock' | 'secret'> & Partial<Pick<Deps, 'http'>>;

export function peerSettingsOf(name: string, config: A2aBackendConfig) {
  const { timeouts = {} } = config;
  if (!URL.canParse(config.url))
    throw new Fault('invalid_request', `${config.url} is not an address`, { param: '/url' });
  const base = new URL(config.url.endsWith('/') || config.url.endsWith('.json') ? config.url : `${config.url}/`);
  const safe =
    base.protocol === 'https:' || (base.protocol === 'http:' && (isLoopback(base.hostname) || config.insecure));
  if (!safe) {
    throw new Fault('invalid_request', `${base.origin}: a peer has to be https, or on this machine`, { param: '/url' });
  }
  if (base.username || base.password || base.search || base.hash) {
    throw new Fault('invalid_request', 'the address of a peer has no user, query or fragment', { param: '/url' });
  }
  return {
    name,
    base,
    secret: config.secret,
    allowed: new Set([base.origin, ...(config.allow_origins ?? [])]),
    keys: config.keys?.length ? config.keys : undefined,
    binding: config.binding,
    insecure: config.insecure ?? false,
    description: config.description,
    artifactLimit: config.artifact_limit ?? 16 * 1024 * 1024,
    fileLimit: config.file_limit ?? 4 * 1024 * 1024,
    /** Our own URL, for peers that send notifications. */
    publicUrl: config.push && reachable(config.push.public_url),
    requestMs: timeouts.request_ms ?? 30_000,
    pollMs: timeouts.poll_ms ?? 1_000,
    pushPollMs: timeouts.push_poll_ms ?? 60_000,
    silenceMs: timeouts.silence_ms ?? 10 * 60_000,
    cancelMs: timeouts.cancel_ms ?? 5_000,
  };
}
export type PeerSettings = Readonly<ReturnType<typeof peerSettingsOf>>;

/** Notifications carry a credential, so they must use https or come from this machine. */
function reachable(address: string): string {
  const param = { param: '/push/public_url' };
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)))) {
    throw new Fault('invalid_request', `${address} has to be https, or on this machine`, param);
  }
  return address.replace(/\/$/, '');
}
