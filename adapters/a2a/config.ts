/** The configuration of the A2A door, and its defaults. */
import { ClosedWord, Id, NonEmpty, type Static, Type } from '../../src/index.ts';

const Optional = Type.Optional;
const Ms = Type.Integer({ minimum: 1 });

export const configSchema = Type.Object(
  {
    /** The public URL, when it differs from the address we listen on. */
    public_url: Optional(NonEmpty),
    /** The workspace of new contexts; the first workspace the caller can see when absent. */
    workspace: Optional(Id),
    /** Agents that peers may call. All mounted agents when absent. */
    agents: Optional(Type.Array(NonEmpty)),
    provider: Optional(Type.Object({ organization: NonEmpty, url: NonEmpty }, { additionalProperties: false })),
    /** Serves clients of 0.3, which send no version. */
    legacy: Optional(Type.Boolean()),
    /** Serves a card with more details to authenticated callers. */
    extended_card: Optional(Type.Boolean()),
    /** Accepted media types; all when absent. */
    input_modes: Optional(Type.Array(NonEmpty)),
    /** The state in which an approval waits for a caller that may give it. `auth_required` keeps its stream open. */
    approvals: Optional(ClosedWord(['input_required', 'auth_required'])),
    /** Whether a plain "yes" of any caller approves. Without it, of callers that ask for it. */
    text_approvals: Optional(Type.Boolean()),
    json_limit: Optional(Type.Integer({ minimum: 1024 })),
    stream: Optional(
      Type.Object({ keep_alive_ms: Optional(Ms), stall_ms: Optional(Ms) }, { additionalProperties: false }),
    ),
    push: Optional(
      Type.Object(
        {
          enabled: Optional(Type.Boolean()),
          /** `host` or `host:port` of webhooks that are allowed although they are not public. */
          allow: Optional(Type.Array(NonEmpty)),
          /** Allows plain http to public addresses. */
          insecure: Optional(Type.Boolean()),
          /** The delay before each retry; after the last one delivery is abandoned. */
          retry_ms: Optional(Type.Array(Ms)),
          timeout_ms: Optional(Ms),
        },
        { additionalProperties: false },
      ),
    ),
    /** A separate port for gRPC. Needs `@grpc/grpc-js` and `@bufbuild/protobuf`. */
    grpc: Optional(
      Type.Object(
        {
          port: Type.Integer({ minimum: 0, maximum: 65_535 }),
          host: Optional(NonEmpty),
          /** The public `host:port`. */
          public: Optional(NonEmpty),
          /** The agent that answers there; the default agent when absent. */
          agent: Optional(NonEmpty),
          /** False leaves the address out of every card: some readers refuse a card that names another origin than its own. */
          card: Optional(Type.Boolean()),
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
  readonly approvals: 'input_required' | 'auth_required';
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
    approvals: config.approvals ?? 'input_required',
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
