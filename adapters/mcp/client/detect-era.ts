/**
 * Detects the era a server speaks with one request that only the newer era has. A failure to reach the server, or a refusal of
 * our credentials, says nothing about its era, which then stays unknown.
 */
import { CODES, type Era, META, MODERN } from '../../../mappings/mcp.ts';
import { asFault, type JsonObject } from '../../../src/index.ts';
import { CLIENT_INFO, type Transport } from './transport/create-transport.ts';
import type { Unasked, Wire } from './transport/transport.ts';

export interface Verdict {
  readonly era: Era;
  /** The connection used for detection, where it can be reused; `listen` gives it to another listener. */
  readonly spare?: { readonly wire: Wire; listen(unasked: Unasked): void };
}

const TIMEOUT_MS = 5_000;
const KNOWN: readonly number[] = [CODES.headerMismatch, CODES.missingCapability, CODES.unsupportedVersion];

export async function findEra(transport: Transport): Promise<Verdict> {
  let target: Unasked = () => {};
  const wire = await transport.open({ revision: undefined }, (frame) => target(frame));
  const spare = {
    wire,
    listen(unasked: Unasked) {
      target = unasked;
    },
  };
  const keep = async (era: Era): Promise<Verdict> => {
    if (transport.kind === 'stdio') return { era, spare };
    await wire.close();
    return { era };
  };
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const outcome = await wire.request('probe', 'server/discover', DISCOVER, { signal, received() {} });
    // Some older servers answer unknown methods with an empty result.
    const modern =
      'result' in outcome ? Array.isArray(outcome.result.supportedVersions) : KNOWN.includes(outcome.error.code);
    return await keep(modern ? 'modern' : 'legacy');
  } catch (thrown) {
    const fault = asFault(thrown);
    if (transport.kind === 'http') {
      await wire.close();
      const { status } = (fault.details ?? {}) as { status?: number };
      if (status !== undefined && status >= 400 && status < 500 && status !== 401 && status !== 403) {
        return { era: 'legacy' };
      }
      throw fault;
    }
    // Some older programs do not answer an unknown method, or exit.
    await wire.close().catch(() => {});
    return { era: 'legacy' };
  }
}

const DISCOVER: JsonObject = {
  _meta: { [META.version]: MODERN, [META.capabilities]: {}, [META.client]: CLIENT_INFO },
};
