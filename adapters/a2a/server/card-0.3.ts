/**
 * The card for clients that send no version: it contains the members of both revisions, so that a reader of either finds its
 * own. A security scheme is spelled in both ways within one object, because strict readers of 1.0 fail on a scheme without a
 * member they know; the requirements are spelled as 0.3 has them only, because a reader of 1.0 refuses every form of its own.
 */
import { PROTOCOL } from '../../../mappings/a2a-0.3.ts';
import { canonicalJson, isObject, type Json, type JsonObject } from '../../../src/index.ts';

type Interface = {
  readonly url: string;
  readonly protocolBinding: string;
  readonly protocolVersion: string;
};

export function toLegacyCard(wire: JsonObject): JsonObject {
  const { securityRequirements: _required, ...rest } = wire;
  const { extendedAgentCard } = wire.capabilities as { extendedAgentCard?: boolean };
  // A card of ours.
  const older = (wire.supportedInterfaces as unknown as Interface[]).filter(
    ({ protocolVersion }) => protocolVersion === PROTOCOL,
  );
  const [first, ...others] = older.map(({ url, protocolBinding: transport }) => ({ url, transport }));
  return {
    ...rest,
    url: first?.url ?? '',
    preferredTransport: first?.transport ?? 'JSONRPC',
    protocolVersion: '0.3.0',
    additionalInterfaces: others as Json,
    supportsAuthenticatedExtendedCard: extendedAgentCard === true,
    // One spelling: the Python SDK of 1.0 reads the older one and signs it as its own.
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'bearer' } } },
    security: [{ bearer: [] }],
  };
}

/**
 * The text that 0.3's Python SDK verifies: the members it knows, without those that have their default value or are empty, and
 * with everything but ASCII escaped.
 */
export function legacyText(card: JsonObject): string {
  const {
    supportedInterfaces: _1,
    preferredTransport,
    protocolVersion: _3,
    capabilities,
    securitySchemes,
    ...rest
  } = card;
  const { extendedAgentCard: _2, ...able } = capabilities as JsonObject;
  const schemes = Object.entries(securitySchemes as Record<string, JsonObject>).map(([name, scheme]) => {
    const { type: _4, httpAuthSecurityScheme: _5, ...known } = scheme;
    return [name, known] as const;
  });
  const known = {
    ...rest,
    ...(preferredTransport !== 'JSONRPC' && { preferredTransport }),
    capabilities: able,
    securitySchemes: Object.fromEntries(schemes),
  };
  const text = canonicalJson(withoutEmpty(known as Json) ?? {});
  return text.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function withoutEmpty(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) {
    const kept = value.map(withoutEmpty).filter((each) => each !== undefined);
    return kept.length > 0 ? (kept as Json) : undefined;
  }
  if (!isObject(value)) return value === '' || value === null ? undefined : value;
  const kept = Object.entries(value).flatMap(([name, each]) => {
    const inside = withoutEmpty(each as Json);
    return inside === undefined ? [] : [[name, inside]];
  });
  return kept.length > 0 ? (Object.fromEntries(kept) as JsonObject) : undefined;
}
