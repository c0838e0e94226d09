/** The configuration of an A2A peer, and its defaults. */
import { ClosedWord, type Deps, Fault, NonEmpty, OpenObject, type Static, Type } from '../../../src/index.ts';
import { isLoopback } from '../../../src/transport/http/origin.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });
export const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const;

export const backendSchema = Type.Object(
  {
    /** The agent's base URL: its card is below it. Several: the next one is used when one cannot be reached. */
    url: Type.Unsafe<string | readonly string[]>({
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } },
      ],
    }),
    /** The secret that holds its token. Sent to the origin of `url`, and to those allowed below, and nowhere else. */
    secret: Optional(NonEmpty),
    /** Further headers of every request to it; each value is the name of a secret. */
    headers: Optional(Type.Record(Type.String(), NonEmpty)),
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

/** Each address of a peer with the settings that hold there. */
export function peerSettingsOf(name: string, config: A2aBackendConfig) {
  const urls = [config.url].flat();
  /** Names of the machines it is on, which are shown to no client. */
  const hosts = urls.flatMap((url) => hostsOf(url));
  return urls.map((url, index) => ({ ...settingsAt(name, url, config), hosts, index, several: urls.length > 1 }));
}
export type PeerSettings = Readonly<ReturnType<typeof peerSettingsOf>[number]>;

/** The spellings of an address that could only mean it: a single word may be a word like any other. */
function hostsOf(url: string): readonly string[] {
  const { origin, host, hostname } = URL.canParse(url) ? new URL(url) : { origin: url, host: url, hostname: url };
  return [origin, host, hostname].filter((spelling) => /[.:]/.test(spelling));
}

function settingsAt(name: string, url: string, config: A2aBackendConfig) {
  const { timeouts = {} } = config;
  if (!URL.canParse(url)) throw new Fault('invalid_request', `${url} is not an address`, { param: '/url' });
  const base = new URL(url.endsWith('/') || url.endsWith('.json') ? url : `${url}/`);
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
    /** Names of secrets, by header in small letters. */
    headers: headersOf(config),
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

/** Headers that say what the request is, and are not the user's to set. */
const OWN_HEADERS =
  /^(host|connection|upgrade|te|content-.*|transfer-encoding|accept|a2a-.*|last-event-id|trace(parent|state)|idempotency-key)$/;

function headersOf({ headers = {}, secret }: A2aBackendConfig): ReadonlyMap<string, string> {
  const named = new Map(Object.entries(headers).map(([header, from]) => [header.toLowerCase(), from]));
  for (const header of named.keys()) {
    const param = { param: '/headers' };
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(header) || OWN_HEADERS.test(header))
      throw new Fault('invalid_request', `the header ${header} cannot be set here`, param);
    if (header === 'authorization' && secret)
      throw new Fault('invalid_request', 'secret is sent as authorization: write one of them', param);
  }
  return named;
}

/** Notifications carry a credential, so they must use https or come from this machine. */
function reachable(address: string): string {
  const param = { param: '/push/public_url' };
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)))) {
    throw new Fault('invalid_request', `${address} has to be https, or on this machine`, param);
  }
  return address.replace(/\/$/, '');
}
