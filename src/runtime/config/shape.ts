/** The schema of `tollbridge.yaml`. Closed: an unknown member is a mistake and is never guessed at. */

import { ClosedWord, type JsonObject, NonEmpty } from '../../model/schema.ts';
import { type Static, type TProperties, type TSchema, Type } from '../../model/type.ts';
import { AUTONOMY_TIERS, QUOTA_LIMITS } from '../../model/words.ts';
import { RULES_SCHEMA } from '../../policy/rules/schema.ts';

const Optional = Type.Optional;
const Closed = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });
/** The description editors show for a member. */
const said = <T extends TSchema>(description: string, schema: T): T => ({ ...schema, description });
const Named = <T extends TSchema>(value: T) =>
  Type.Unsafe<Readonly<Record<string, Static<T>>>>({
    type: 'object',
    propertyNames: { pattern: '^[a-z][a-z0-9_-]*$' },
    additionalProperties: value,
  });
const Sections = Type.Unsafe<JsonObject>({ type: 'object', additionalProperties: { type: 'object' } });
const WebAddress = Type.Unsafe<string>({
  type: 'string',
  pattern: '^https?://[^\\s]+$',
  examples: ['https://gateway.example'],
});
const Duration = Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['30s', '10m', '12h', '30d'] });

/** Beside the section of an agent's protocol: what holds for it whichever protocol it speaks. */
export const AgentTermsShape = Closed({
  about: Optional(
    said(
      'Shown to clients instead of what the agent says about itself.',
      Closed({
        description: Optional(NonEmpty),
        version: Optional(NonEmpty),
        icon_url: Optional(WebAddress),
        documentation_url: Optional(WebAddress),
        skills: Optional(
          said(
            'What it can do, for its card.',
            Type.Array(
              Closed({
                id: NonEmpty,
                name: NonEmpty,
                description: NonEmpty,
                tags: Optional(Type.Array(NonEmpty)),
                examples: Optional(Type.Array(NonEmpty)),
              }),
            ),
          ),
        ),
      }),
    ),
  ),
  quota: Optional(said('One of `quotas`: all its work counts against it.', NonEmpty)),
  off: Optional(
    said(
      'It accepts no work, and says why: `true`, or the reason. Work it has begun goes on.',
      Type.Unsafe<boolean | string>({ anyOf: [{ type: 'boolean' }, { type: 'string', minLength: 1 }] }),
    ),
  ),
});
export const OAuthShape = Closed({
  issuer: said('Exactly as tokens spell it in `iss`.', NonEmpty),
  audience: said(
    'Who tokens must be for: us.',
    Type.Unsafe<string | string[]>({
      type: ['string', 'array'],
      minLength: 1,
      minItems: 1,
      items: { type: 'string', minLength: 1 },
    }),
  ),
  jwks_uri: said('Where the issuer publishes its keys.', WebAddress),
  tenant_claim: Optional(
    said('Claims that name the tenant and the workspaces; absent means tokens are not bound to any.', NonEmpty),
  ),
  workspaces_claim: Optional(NonEmpty),
  required_scopes: Optional(said('Scopes every token must carry to be anyone here.', Type.Array(NonEmpty))),
  clock_tolerance: Optional(said('How far clocks may be apart.', Duration)),
  sign_in: Optional(
    said(
      'Lets people sign in to the console at this issuer. Register `<address of the gateway>/sign-in` there as a redirect address.',
      Closed({
        client_id: said('The name under which the console is registered at the issuer.', NonEmpty),
        secret: Optional(said("Name of the client's secret; absent for a public client.", NonEmpty)),
        scopes: Optional(said('Scopes to ask for, beside `openid`.', Type.Array(NonEmpty))),
        roles_claim: Optional(
          said(
            'The claim that names groups or roles, or a path to it (`realm_access.roles`). Absent: the granted scopes count.',
            NonEmpty,
          ),
        ),
        roles: Optional(
          said(
            'The role here of each value of that claim: `viewer`, `approver` or `admin`.',
            Named(ClosedWord(['viewer', 'approver', 'admin'])),
          ),
        ),
      }),
    ),
  ),
});

export const VaultShape = Closed({
  provider: said(
    '`env`: variables. `file`: an encrypted file. `store`: the database of the log, encrypted, for all gateways; it needs `store.keys`.',
    ClosedWord(['env', 'file', 'store']),
  ),
  prefix: Optional(
    said(
      '`env`: what names of variables begin with. Without it any variable could be asked for by name.',
      Type.Unsafe<string>({ type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
    ),
  ),
  path: Optional(said('`file`: where it is, and what opens it: a key file, or a passphrase in a variable.', NonEmpty)),
  key_file: Optional(NonEmpty),
  passphrase_env: Optional(NonEmpty),
  access: Optional(
    said(
      'Who may use which of its secrets; all that a grant names has to fit. Without any: work that has no tenant.',
      Type.Array(
        Closed({
          tenants: Optional(said('By name; `*` for all. Work without a tenant, when absent.', Type.Array(NonEmpty))),
          workspaces: Optional(said('By id. Any, when absent.', Type.Array(NonEmpty))),
          personas: Optional(said('By name or id. Any and none, when absent.', Type.Array(NonEmpty))),
          secrets: Optional(said('By name, `*` for any part of it. All, when absent.', Type.Array(NonEmpty))),
        }),
      ),
    ),
  ),
});

export const TelemetryShape = Closed({
  traces: Optional(
    Closed({
      endpoint: said('Where an OTLP collector takes traces over HTTP: `http://localhost:4318/v1/traces`.', WebAddress),
      service_name: Optional(NonEmpty),
      headers: Optional(
        said('Headers for the collector; each value is the name of a secret.', Type.Record(Type.String(), NonEmpty)),
      ),
    }),
  ),
});

export const ConfigShape = Closed({
  data: Optional(said('Where everything is kept. Relative paths are relative to this file.', NonEmpty)),
  store: Optional(
    Closed({
      url: Optional(
        said(
          'The log is in PostgreSQL, for several gateways: postgres://user@host:5432/database?sslmode=verify-full. Without a password.',
          Type.Unsafe<string>({
            type: 'string',
            pattern: '^postgres(ql)?://',
            examples: ['postgres://tollbridge@db.example:5432/tollbridge'],
          }),
        ),
      ),
      secret: Optional(said('With `url`: the name of the secret that holds the password.', NonEmpty)),
      keys: Optional(
        said(
          'With `url`: the name of a secret of 32 characters or more. Keys, API keys, sign-ins and open questions then lie in the database, encrypted under it, and hold for all gateways. Absent: in the data directory of each.',
          NonEmpty,
        ),
      ),
      direct_url: Optional(
        said('With `url` of a pooler in transaction mode: the database itself, for leases and notices.', NonEmpty),
      ),
      schema: Optional(said('With `url`: the schema that holds the tables; `tollbridge` when absent.', NonEmpty)),
      standby: Optional(
        said('With `url`: a write is answered only once a synchronous standby has applied it.', Type.Boolean()),
      ),
      connections: Optional(
        said(
          'With `url`: connections of this gateway at most, beside two of its own. 10 when absent.',
          Type.Integer({ minimum: 2, maximum: 1_000 }),
        ),
      ),
      statement_timeout: Optional(
        said(
          'With `url`: how long one statement may take. 30 s when absent.',
          Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['30s'] }),
        ),
      ),
      lease_timeout: Optional(
        said(
          'With `url`: how long a gateway may be silent before others take over what it holds. 10 s when absent.',
          Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['10s'] }),
        ),
      ),
      path: Optional(said('The file of the log; log.db below `data` when absent.', NonEmpty)),
      max_size: Optional(
        said(
          'The log does not grow beyond this: as on a full disk, nothing more is decided and so nothing more is done.',
          Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['500MB', '10GB'] }),
        ),
      ),
      wait: Optional(
        said(
          'How long a write waits for another process that writes.',
          Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['500ms', '5s'] }),
        ),
      ),
    }),
  ),
  listen: Optional(
    Closed({
      host: Optional(NonEmpty),
      port: Optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
      drain: Optional(
        said(
          'How long it goes on accepting connections after it was asked to stop, while `/readyz` says no. Not at all when absent.',
          Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['5s', '15s'] }),
        ),
      ),
      public_url: Optional(said('Where others reach us, when that is not where we listen.', WebAddress)),
      tls: Optional(
        Closed({
          cert: said('PEM file with the certificate and its chain. Read again when it changes.', NonEmpty),
          key: said('PEM file with its key, readable by this user only. Read again when it changes.', NonEmpty),
          min_version: Optional(said('`1.2` when absent.', ClosedWord(['1.2', '1.3']))),
          hsts: Optional(
            said(
              'How long browsers stay with https; never said to loopback names. A year when absent; `false` says nothing.',
              Type.Unsafe<string | false>({ anyOf: [{ type: 'string', minLength: 1 }, { const: false }] }),
            ),
          ),
        }),
      ),
      allowed_hosts: Optional(
        said('Names beyond the loopback ones that requests may address us by.', Type.Array(NonEmpty)),
      ),
      allowed_origins: Optional(said('Origins beyond our own whose pages may use us.', Type.Array(WebAddress))),
    }),
  ),
  replicas: Optional(
    said(
      'Other gateways on the same store. Processes of one machine that share a data directory need none of this.',
      Closed({
        listen: Optional(
          said(
            'Host and port for requests that other replicas hand on: plain HTTP, for a network of your own. A socket in the data directory when absent.',
            Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['10.0.0.5:4320', '0.0.0.0:4320'] }),
          ),
        ),
        address: Optional(
          said(
            'Where the other replicas reach it, when that is not where it listens.',
            Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['gateway-0.gateways:4320'] }),
          ),
        ),
        secret: Optional(
          said(
            'Name of the secret that all replicas share. Needed where they do not share the data directory.',
            NonEmpty,
          ),
        ),
      }),
    ),
  ),
  limits: Optional(
    Closed({
      connections: Optional(
        said(
          'Connections open at once; the longest silent one makes room. Half of the file descriptors when absent.',
          Type.Integer({ minimum: 1 }),
        ),
      ),
      connections_per_address: Optional(
        said(
          'Of these, from one address that is not this machine. A quarter when absent.',
          Type.Integer({ minimum: 1 }),
        ),
      ),
      children: Optional(
        said(
          'Programs running at once: agents, tool servers, harnesses. 256 at most when absent.',
          Type.Integer({ minimum: 1 }),
        ),
      ),
      result: Optional(
        said(
          'Text of one result. A larger one is refused after the call; the error says that the call ran.',
          Type.Unsafe<string>({ type: 'string', minLength: 1, examples: ['4MB', '16MB'] }),
        ),
      ),
    }),
  ),
  auth: Optional(Closed({ oauth: Optional(OAuthShape) })),
  vaults: Optional(
    said('Where secrets are looked up, in this order when a name does not say in which.', Named(VaultShape)),
  ),
  telemetry: Optional(TelemetryShape),
  doors: Optional(
    said(
      'Per protocol, in the words of its adapter; `false` leaves a door shut.',
      Named(Type.Unsafe<JsonObject | false>({ anyOf: [{ type: 'object' }, { const: false }] })),
    ),
  ),
  agents: Optional(
    said(
      'Who does the work, by name: one section each, named after the protocol it speaks.',
      Named(
        Type.Unsafe<JsonObject>({
          type: 'object',
          // Checked by itself, so that a mistake in it is reported without the names of protocols.
          patternProperties: { [`^(${Object.keys(AgentTermsShape.properties).join('|')})$`]: true },
          additionalProperties: { type: 'object' },
        }),
      ),
    ),
  ),
  tools: Optional(
    said(
      'Tools for all of them, by name of the server: one section each, likewise; and `expose`, for which of them and how.',
      Named(Sections),
    ),
  ),
  bundles: Optional(
    said(
      'Sets of tools by name. A persona or principal that a bundle names gets only the tools of its bundles.',
      Named(
        Closed({
          tools: said('`server/tool`, or the name of a tool; `*` stands for any part.', Type.Array(NonEmpty)),
          personas: Optional(said('Personas that get these tools.', Type.Array(NonEmpty))),
          principals: Optional(
            said(
              'Ids of keys, people or services that get these tools; `*` stands for any part.',
              Type.Array(NonEmpty),
            ),
          ),
        }),
      ),
    ),
  ),
  harnesses: Optional(
    said('Harnesses elsewhere that decide with our own rules; the strictest word counts.', Named(Sections)),
  ),
  relays: Optional(
    said(
      'Per protocol: how the command behaves that stands between two others, like `tollbridge acp`. Its flags win.',
      Named(Type.Unsafe<JsonObject>({ type: 'object' })),
    ),
  ),
  demo: Optional(said('The built-in agents and tools. There unless `agents` names others.', Type.Boolean())),
  default_agent: Optional(
    said('The agent that does work which names none; the first of `agents` when absent.', NonEmpty),
  ),
  autonomy: Optional(said('How freely agents without a persona act.', ClosedWord(AUTONOMY_TIERS))),
  personas: Optional(
    said(
      'Autonomy, agent and limits of a session or task, which names it as `persona_<name>`.',
      Named(
        Closed({
          /** The agent that does the work. */
          agent: Optional(NonEmpty),
          description: Optional(Type.String()),
          autonomy: Optional(ClosedWord(AUTONOMY_TIERS)),
          /** The only tools it may use, `*` for any part of a name. Absent: all. */
          tools: Optional(Type.Array(NonEmpty)),
          /** The only agents it may hand work to. */
          handoffs: Optional(Type.Array(NonEmpty)),
          /** One of `quotas`. */
          quota: Optional(NonEmpty),
        }),
      ),
    ),
  ),
  quotas: Optional(
    Named(
      Closed({
        limits: said(
          'How much of what.',
          Closed(Object.fromEntries(QUOTA_LIMITS.map((name) => [name, Optional(Type.Number({ minimum: 0 }))]))),
        ),
        scope: Optional(
          said(
            '`persona` (when absent): for personas and agents that name it. `organization`: for all work here.',
            ClosedWord(['persona', 'organization']),
          ),
        ),
        per: Optional(said('Counts begin anew after this long: 1h, 1d. For good, when absent.', Duration)),
        soft: Optional(said('Reported, not enforced.', Type.Boolean())),
      }),
    ),
  ),
  reads_in_one_commit: Optional(
    said(
      '`true` when absent: the decision on a tool call that by trusted definition has no effect, and that a rule allows outright, is written together with its result, before the answer is given. It is faster, but a crash in between leaves no trace of that call. `false`: every decision is written before its act.',
      Type.Boolean(),
    ),
  ),
  approvals: Optional(
    Closed({
      expire_after: Optional(said('A question that is not answered by then is denied.', Duration)),
      webhooks: Optional(
        said(
          'Webhooks that receive questions, by name.',
          Named(
            Closed({
              url: WebAddress,
              /** The name of the secret that messages are signed with. */
              secret: NonEmpty,
              /** Messages carry a link that answers the question. Any reader of the message can use it. */
              links: Optional(Type.Boolean()),
            }),
          ),
        ),
      ),
    }),
  ),
  retention: Optional(
    Closed({ events: Optional(said('How long events are kept. For good, when absent; receipts always.', Duration)) }),
  ),
  witness: Optional(
    said(
      'Who keeps signed heads of the log, by name: a file elsewhere, or another gateway.',
      Named(
        Type.Union([
          Closed({ file: said('Heads are added to it and never taken out.', NonEmpty) }),
          Closed({
            url: said('Another gateway: https://witness.example/witness/heads.', WebAddress),
            secret: Optional(
              said('The name of the secret that holds a key of that gateway, with the scope witness:write.', NonEmpty),
            ),
          }),
        ]),
      ),
    ),
  ),
  rules: Optional(RULES_SCHEMA),
  policies: Optional(said('Files of rules, `.cedar` or `.yaml`.', Type.Array(NonEmpty))),
});
export type ConfigFile = Static<typeof ConfigShape>;
