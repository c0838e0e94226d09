/**
 * The gateway's public description: one card in the protocol's own words with an A2A card inside, each signed. Names only
 * transports that are served. A superset of the members that the documents and the older suite require.
 */

import { canonicalJson, type Deps, type JsonObject, type Skill, VERSION } from '../../../src/index.ts';
import { detachedJws } from '../../../src/transport/http/detached-jws.ts';
import type { HarnSettings } from '../config.ts';
import { type Revision, VERSIONS } from '../revisions/revisions.ts';
import type { WireShape } from '../revisions/schemas.ts';

interface CardDeps {
  readonly settings: HarnSettings;
  readonly deps: Pick<Deps, 'http' | 'sign' | 'oauth'>;
  readonly openedAt: string;
  /** How long events and receipts are kept; it changes with the configuration. */
  readonly retention: () => WireShape<'Retention'>;
}

const ABOUT = 'A gateway between agent protocols: one policy, one log, one signed receipt for each task.';
/** Where the A2A door of this gateway shows its card. */
const A2A_CARD = '/.well-known/agent-card.json';

export function createCard(about: CardDeps): (prefix: string, revision: Revision) => Promise<JsonObject> {
  const { settings, deps } = about;
  const made = new Map<string, { readonly from: string; readonly card: JsonObject }>();
  return async (prefix, { version }) => {
    const base = `${settings.publicUrl ?? deps.http.url}${prefix}`;
    const object = prefix === '' ? (settings.card.object ?? 'harn_agent_card') : 'agent_card';
    const a2a = (await deps.http.published?.(A2A_CARD)) as JsonObject | undefined;
    // Cached until its contents change: agents are added and removed by the configuration.
    const key = `${object} ${base} ${version}`;
    const from = JSON.stringify([a2a ?? null, about.retention()]);
    const known = made.get(key);
    if (known?.from === from) return known.card;
    const card = sign(build({ ...about, base, object, version, a2a }), deps);
    made.set(key, { from, card });
    return card;
  };
}

interface Where extends CardDeps {
  readonly base: string;
  readonly object: 'harn_agent_card' | 'agent_card';
  readonly version: string;
  /** The card of the A2A door, as it is served; undefined when there is none. */
  readonly a2a: JsonObject | undefined;
}

function build({ base, object, version, a2a, settings, openedAt, deps, retention }: Where): JsonObject {
  const { name = 'Tollbridge', description = ABOUT, provider, a2a_url } = settings.card;
  const a2aUrl = a2a_url ?? urlOf(a2a);
  const interfaces: NonNullable<WireShape<'HarnAgentCard'>['harn_interfaces']> = [
    { transport: 'rest', url: `${base}/v1` },
    { transport: 'sse', url: `${base}/v1/events/stream` },
    { transport: 'websocket', url: `${base.replace(/^http/, 'ws')}/v1/events/stream` },
    ...(a2aUrl ? [{ transport: 'a2a' as const, url: a2aUrl }] : []),
  ];
  const keysUrl = `${base}/.well-known/harn-receipt-keys.json`;
  const own = () => signA2a(a2aCard({ base, version, name, description, a2aUrl: a2a_url, provider }), keysUrl, deps);
  const nested = a2a ?? own();
  const card: Omit<WireShape<'HarnAgentCard'>, 'signature'> & { interfaces: unknown; a2a_agent_card: unknown } = {
    id: 'agent_card_tollbridge',
    object,
    created_at: openedAt,
    updated_at: openedAt,
    metadata: { receipt_keys_url: keysUrl, version: VERSION, supported_versions: [...VERSIONS] },
    name,
    description,
    protocol_version: version,
    a2a_card: nested,
    a2a_agent_card: nested,
    harn_interfaces: interfaces,
    interfaces,
    skills: [runTask(openedAt)],
    persona_ids: [],
    capabilities: ['rest', 'sse', 'websocket', 'receipts', 'replay', 'permission_requests', 'truncate'],
    auth_schemes: ['bearerAuth', ...(deps.oauth ? ['oauth2ClientCredentials'] : [])],
    receipt_policy: 'required',
    quotas: [],
    ...(provider && { provider }),
    public_url: base,
    retention: retention(),
  };
  return card as JsonObject;
}

/** The address an A2A card leads to. */
function urlOf(card: JsonObject | undefined): string | undefined {
  const [first] = (card?.supportedInterfaces ?? []) as readonly { readonly url?: string }[];
  return first?.url;
}

function runTask(at: string): Skill {
  return {
    id: 'skill_run_task',
    object: 'skill',
    created_at: at,
    updated_at: at,
    metadata: { tags: ['agent', 'task'] },
    name: 'run_task',
    description: 'Gives work to a mounted agent, asks people where policy says so, and proves what happened.',
    input_schema: { type: 'object', required: ['role', 'parts'] },
    output_schema: null,
    source: 'tollbridge',
    version: VERSION,
    capabilities: [],
    requires_approval: false,
    deprecated: false,
  };
}

interface Nested {
  readonly base: string;
  readonly version: string;
  readonly name: string;
  readonly description: string;
  readonly a2aUrl: string | undefined;
  readonly provider: JsonObject | undefined;
}

/** Members of both card revisions; without an A2A door, the native interface is the only one named. */
function a2aCard({ base, version, name, description, a2aUrl, provider }: Nested): JsonObject {
  const [url, protocolBinding, protocolVersion] = a2aUrl
    ? [a2aUrl, 'JSONRPC', '1.0']
    : [`${base}/v1`, 'AGENTS_PROTOCOL', version];
  return {
    name,
    description,
    version: VERSION,
    url,
    preferredTransport: protocolBinding,
    protocolVersion,
    supportedInterfaces: [{ url, protocolBinding, protocolVersion }],
    additionalInterfaces: [{ url, transport: protocolBinding }],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [
      {
        id: 'run_task',
        name: 'Run a task',
        description: 'Gives work to a mounted agent, asks people where policy says so, and proves what happened.',
        tags: ['agent', 'task'],
      },
    ],
    securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
    security: [{ bearerAuth: [] }],
    ...(provider && { provider }),
  };
}

/** Ed25519 over the canonical text of the card without its signature. */
function sign(card: JsonObject, { sign }: Pick<Deps, 'sign'>): JsonObject {
  const made = sign?.(canonicalJson(card));
  const value = made?.signature.replace(/^base64:/, '');
  return { ...card, signature: made && value ? { algorithm: made.algorithm, key_id: made.key_id, value } : null };
}

/** As A2A signs its cards: a detached JWS over the canonical text of the card without its signatures. */
function signA2a(card: JsonObject, keysUrl: string, { sign }: Pick<Deps, 'sign'>): JsonObject {
  return sign ? { ...card, signatures: [detachedJws(canonicalJson(card), sign, { jku: keysUrl })] } : card;
}
