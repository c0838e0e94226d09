/**
 * The card for clients of 0.3, which send no version: it contains the members of both revisions, so that a reader of either
 * finds its own. It is unsigned: the signature covers the 1.0 form, and security is spelled differently here.
 */
import { PROTOCOL } from '../../../mappings/a2a-0.3.ts';
import type { Json, JsonObject } from '../../../src/index.ts';

type Interface = {
  readonly url: string;
  readonly protocolBinding: string;
  readonly protocolVersion: string;
};

export function toLegacyCard(wire: JsonObject): JsonObject {
  const { signatures: _signed, securityRequirements: _required, capabilities, ...rest } = wire;
  const { extendedAgentCard, ...abilities } = capabilities as { extendedAgentCard?: boolean };
  const older = (wire.supportedInterfaces as Interface[]).filter(({ protocolVersion }) => protocolVersion === PROTOCOL);
  const [first, ...others] = older.map(({ url, protocolBinding: transport }) => ({ url, transport }));
  return {
    ...rest,
    url: first?.url ?? '',
    preferredTransport: first?.transport ?? 'JSONRPC',
    protocolVersion: '0.3.0',
    additionalInterfaces: others as Json,
    capabilities: abilities as JsonObject,
    supportsAuthenticatedExtendedCard: extendedAgentCard === true,
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    security: [{ bearer: [] }],
  };
}
