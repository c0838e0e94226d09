/** What may stand in `tollbridge.yaml`. Closed: a word that is not here is a mistake, not a wish to be guessed at. */
import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { ClosedWord, type JsonObject, NonEmpty } from './model/schema.ts';
import { AUTONOMY_TIERS } from './model/words.ts';
import { RULES_SCHEMA } from './policy/rules-schema.ts';

const Optional = Type.Optional;
const Closed = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });
const Named = <T extends TSchema>(value: T) =>
  Type.Unsafe<Readonly<Record<string, Static<T>>>>({
    type: 'object',
    propertyNames: { pattern: '^[a-z][a-z0-9_-]*$' },
    additionalProperties: value,
  });
const Sections = Type.Unsafe<JsonObject>({ type: 'object', additionalProperties: { type: 'object' } });
const WebAddress = Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' });

export const OAuthShape = Closed({
  /** Exactly as tokens spell it in `iss`. */
  issuer: NonEmpty,
  /** Who tokens must be for: us. */
  audience: Type.Unsafe<string | string[]>({
    type: ['string', 'array'],
    minLength: 1,
    minItems: 1,
    items: { type: 'string', minLength: 1 },
  }),
  /** Where the issuer publishes its keys. */
  jwks_uri: WebAddress,
  /** Claims that name the tenant and the workspaces; absent means tokens are not bound to any. */
  tenant_claim: Optional(NonEmpty),
  workspaces_claim: Optional(NonEmpty),
  /** Scopes every token must carry to be anyone here. */
  required_scopes: Optional(Type.Array(NonEmpty)),
  /** How far clocks may be apart. */
  clock_tolerance: Optional(NonEmpty),
});

export const VaultShape = Closed({
  provider: ClosedWord(['env', 'file']),
  /** `env`: what names of variables begin with. Without it any variable could be asked for by name. */
  prefix: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
  /** `file`: where it is, and what opens it: a key file, or a passphrase in a variable. */
  path: Optional(NonEmpty),
  key_file: Optional(NonEmpty),
  passphrase_env: Optional(NonEmpty),
});

export const TelemetryShape = Closed({
  traces: Optional(
    Closed({
      /** Where an OTLP collector takes traces over HTTP: `http://localhost:4318/v1/traces`. */
      endpoint: WebAddress,
      service_name: Optional(NonEmpty),
      /** Headers for the collector; each value is the name of a secret. */
      headers: Optional(Type.Record(Type.String(), NonEmpty)),
    }),
  ),
});

export const ConfigShape = Closed({
  /** Where everything is kept. Relative paths are relative to this file. */
  data: Optional(NonEmpty),
  listen: Optional(
    Closed({
      host: Optional(NonEmpty),
      port: Optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
      /** Where others reach us, when that is not where we listen. */
      public_url: Optional(WebAddress),
      /** Names beyond the loopback ones that requests may address us by. */
      allowed_hosts: Optional(Type.Array(NonEmpty)),
      /** Origins beyond our own whose pages may use us. */
      allowed_origins: Optional(Type.Array(WebAddress)),
    }),
  ),
  auth: Optional(Closed({ oauth: Optional(OAuthShape) })),
  /** Where secrets are looked up, in this order when a name does not say in which. */
  vaults: Optional(Named(VaultShape)),
  telemetry: Optional(TelemetryShape),
  /** Per protocol, in the words of its adapter; `false` leaves a door shut. */
  doors: Optional(Named(Type.Unsafe<JsonObject | false>({ anyOf: [{ type: 'object' }, { const: false }] }))),
  /** Who does the work, by name: one section each, named after the protocol it speaks. */
  agents: Optional(Named(Sections)),
  /** Tools for all of them, by name of the server: one section each, likewise. */
  tools: Optional(Named(Sections)),
  /** Harnesses elsewhere that decide with our own rules; the strictest word counts. */
  harnesses: Optional(Named(Sections)),
  /** The built-in agents and tools. There unless `agents` names others. */
  demo: Optional(Type.Boolean()),
  /** The agent that does work which names none; the first of `agents` when absent. */
  default_agent: Optional(NonEmpty),
  /** How freely agents without a persona act. */
  autonomy: Optional(ClosedWord(AUTONOMY_TIERS)),
  /** How freely someone works, and with what; sessions and tasks name one as `persona_<name>`. */
  personas: Optional(
    Named(
      Closed({
        /** The agent that does the work. */
        agent: Optional(NonEmpty),
        description: Optional(Type.String()),
        autonomy: Optional(ClosedWord(AUTONOMY_TIERS)),
        /** The only tools it may use, `*` for any part of a name. All, when absent. */
        tools: Optional(Type.Array(NonEmpty)),
        /** The only agents it may hand work to. */
        handoffs: Optional(Type.Array(NonEmpty)),
        /** One of `quotas`. */
        quota: Optional(NonEmpty),
      }),
    ),
  ),
  quotas: Optional(
    Named(
      Closed({
        /** How much of what: `tasks`, `tool_calls`, `usd`, `tokens`, ... */
        limits: Type.Record(Type.String(), Type.Number({ minimum: 0 })),
        /** Counts begin anew after this long: 1h, 1d. For good, when absent. */
        per: Optional(NonEmpty),
        /** Told, not enforced. */
        soft: Optional(Type.Boolean()),
      }),
    ),
  ),
  approvals: Optional(
    Closed({
      expire_after: Optional(NonEmpty),
      /** Who is told of questions, by name. */
      webhooks: Optional(
        Named(
          Closed({
            url: WebAddress,
            /** The name of the secret that messages are signed with. */
            secret: NonEmpty,
            /** Messages carry a link that answers. Whoever reads the message can use it. */
            links: Optional(Type.Boolean()),
          }),
        ),
      ),
    }),
  ),
  retention: Optional(Closed({ events: Optional(NonEmpty) })),
  rules: Optional(RULES_SCHEMA),
  /** Files of rules, `.cedar` or `.yaml`. */
  policies: Optional(Type.Array(NonEmpty)),
});
export type ConfigFile = Static<typeof ConfigShape>;
