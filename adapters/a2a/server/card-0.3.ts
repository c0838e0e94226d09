/**
 * The card for clients that send no version: it contains the members of both revisions, so that a reader of either finds its
 * own. A security scheme is spelled in both ways within one object, because strict readers of 1.0 fail on a scheme without a
 * member they know; the requirements are spelled as 0.3 has them only, because a reader of 1.0 refuses every form of its own.
 * It is unsigned: the signature covers the 1.0 form.
 */
import { PROTOCOL } from '../../../mappings/a2a-0.3.ts';
import type { Json, JsonObject } from '../../../src/index.ts';

type Interface = {
  readonly url: string;
  readonly protocolBinding: string;
  readonly protocolVersion: string;
};

export function toLegacyCard(wire: JsonObject): JsonObject {
  const { signatures: _signed, securityRequirements: _required, ...rest } = wire;
  const { extendedAgentCard } = wire.capabilities as { extendedAgentCard?: boolean };
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
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    security: [{ bearer: [] }],
  };
}
