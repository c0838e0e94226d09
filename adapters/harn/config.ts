/** The configuration of this door and its defaults. */
import { ClosedWord, NonEmpty, OpenObject, type Static, Type } from '../../src/index.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });

export const configSchema = Type.Object(
  {
    /** Where others reach us, when that is not where we listen. */
    public_url: Optional(NonEmpty),
    card: Optional(
      Type.Object(
        {
          name: Optional(NonEmpty),
          description: Optional(Type.String()),
          /** `agent_card` is the word an older conformance suite looks for at the root. */
          object: Optional(ClosedWord(['harn_agent_card', 'agent_card'])),
          provider: Optional(OpenObject),
          /** The A2A address of this gateway, if it has one. */
          a2a_url: Optional(NonEmpty),
        },
        { additionalProperties: false },
      ),
    ),
    /** The whole API a second time, with the older card. `/harn-suite` unless named otherwise; empty turns it off. */
    suite_prefix: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^(/[A-Za-z0-9_-]+)?$' })),
    json_limit: Optional(Type.Integer({ minimum: 1024 })),
    upload_limit: Optional(Type.Integer({ minimum: 1024 })),
    stream: Optional(
      Type.Object(
        {
          keep_alive_ms: Optional(Ms),
          stall_ms: Optional(Ms),
          buffer_bytes: Optional(Type.Integer({ minimum: 1024 })),
          /** How often a long connection has to show that its token still holds. */
          recheck_ms: Optional(Ms),
        },
        { additionalProperties: false },
      ),
    ),
    /** How long the tools of a disconnected host, and its open requests, wait for the host to reconnect. */
    host_patience_ms: Optional(Ms),
    /**
     * Directories below which workspaces may have their root and have their files served. None unless named here: a
     * workspace is declared over the network, and its root must not decide which files of this machine can be read.
     */
    files: Optional(Type.Array(Type.Unsafe<string>({ type: 'string', pattern: '^/' }))),
  },
  { additionalProperties: false },
);
export type HarnConfig = Static<typeof configSchema>;

const MIB = 1024 * 1024;

export function settingsOf(config: HarnConfig) {
  return {
    publicUrl: config.public_url?.replace(/\/$/, ''),
    card: config.card ?? {},
    suitePrefix: config.suite_prefix ?? '/harn-suite',
    jsonLimit: config.json_limit ?? 4 * MIB,
    uploadLimit: config.upload_limit ?? 64 * MIB,
    keepAliveMs: config.stream?.keep_alive_ms ?? 15_000,
    stallMs: config.stream?.stall_ms ?? 30_000,
    bufferBytes: config.stream?.buffer_bytes ?? MIB,
    recheckMs: config.stream?.recheck_ms ?? 15_000,
    hostTimeoutMs: config.host_patience_ms ?? 5 * 60_000,
    files: config.files ?? [],
  };
}
export type HarnSettings = Readonly<ReturnType<typeof settingsOf>>;
