/** What can be said about this door in a configuration, and what holds when nothing is said. */
import { Id, NonEmpty, type Static, Type } from '../../src/index.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });

export const configSchema = Type.Object(
  {
    /** Where others reach us, when that is not where we listen. */
    public_url: Optional(NonEmpty),
    /** Where conversations are opened; the first workspace the caller can see when absent. */
    workspace: Optional(Id),
    /** Agents that peers may call. All that are mounted when absent. */
    agents: Optional(Type.Array(NonEmpty)),
    provider: Optional(Type.Object({ organization: NonEmpty, url: NonEmpty }, { additionalProperties: false })),
    /** Older clients, which send no version. */
    legacy: Optional(Type.Boolean()),
    /** A card with more in it for whoever says who it is. */
    extended_card: Optional(Type.Boolean()),
    /** Media types taken in; everything when absent. */
    input_modes: Optional(Type.Array(NonEmpty)),
    /** Whether a plain "yes" approves. It does not unless this says so. */
    text_approvals: Optional(Type.Boolean()),
    json_limit: Optional(Type.Integer({ minimum: 1024 })),
    stream: Optional(
      Type.Object({ keep_alive_ms: Optional(Ms), stall_ms: Optional(Ms) }, { additionalProperties: false }),
    ),
    push: Optional(
      Type.Object(
        {
          enabled: Optional(Type.Boolean()),
          /** `host` or `host:port` that may be called although they are not public. */
          allow: Optional(Type.Array(NonEmpty)),
          /** Plain http to the outside. */
          insecure: Optional(Type.Boolean()),
          /** How long to wait before each new try; after the last one it is given up. */
          retry_ms: Optional(Type.Array(Ms)),
          timeout_ms: Optional(Ms),
        },
        { additionalProperties: false },
      ),
    ),
    /** A port of its own for gRPC. Needs `@grpc/grpc-js` and `@bufbuild/protobuf`. */
    grpc: Optional(
      Type.Object(
        {
          port: Type.Integer({ minimum: 0, maximum: 65_535 }),
          host: Optional(NonEmpty),
          /** `host:port` as others reach it. */
          public: Optional(NonEmpty),
          /** Which agent answers there; the default one when absent. */
          agent: Optional(NonEmpty),
          tls: Optional(Type.Object({ cert: NonEmpty, key: NonEmpty }, { additionalProperties: false })),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
export type A2aConfig = Static<typeof configSchema>;

export interface A2aSettings {
  readonly publicUrl: string | undefined;
  readonly workspace: string | undefined;
  readonly agents: readonly string[] | undefined;
  readonly provider: A2aConfig['provider'];
  readonly legacy: boolean;
  readonly extendedCard: boolean;
  readonly inputModes: readonly string[] | undefined;
  readonly textApprovals: boolean;
  readonly jsonLimit: number;
  readonly keepAliveMs: number;
  readonly stallMs: number;
  readonly push: {
    readonly enabled: boolean;
    readonly allow: readonly string[];
    readonly insecure: boolean;
    readonly retryMs: readonly number[];
    readonly timeoutMs: number;
  };
  readonly grpc: A2aConfig['grpc'];
}

export function settingsOf(config: A2aConfig): A2aSettings {
  const { push = {} } = config;
  return {
    publicUrl: config.public_url?.replace(/\/$/, ''),
    workspace: config.workspace,
    agents: config.agents,
    provider: config.provider,
    legacy: config.legacy ?? true,
    extendedCard: config.extended_card ?? true,
    inputModes: config.input_modes,
    textApprovals: config.text_approvals ?? false,
    jsonLimit: config.json_limit ?? 4 * 1024 * 1024,
    keepAliveMs: config.stream?.keep_alive_ms ?? 15_000,
    stallMs: config.stream?.stall_ms ?? 30_000,
    push: {
      enabled: push.enabled ?? true,
      allow: push.allow ?? [],
      insecure: push.insecure ?? false,
      retryMs: push.retry_ms ?? [1_000, 5_000, 30_000, 120_000, 600_000],
      timeoutMs: push.timeout_ms ?? 10_000,
    },
    grpc: config.grpc,
  };
}
