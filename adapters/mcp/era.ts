/**
 * Which era a server speaks: asked once, in words only the newer one knows. What is no answer to that question is no
 * verdict: a server that cannot be reached or does not let us in has no era yet.
 */
import { CODES, type Era, META, MODERN } from '../../mappings/mcp.ts';
import { asFault, type JsonObject } from '../../src/index.ts';
import type { Unasked, Wire } from './south.ts';
import { CLIENT_INFO, type Way } from './way.ts';

export interface Verdict {
  readonly era: Era;
  /** The wire it was asked on, where that is worth keeping; it can be given to another listener. */
  readonly spare?: { readonly wire: Wire; listen(unasked: Unasked): void };
}

const PATIENCE_MS = 5_000;
const KNOWN: readonly number[] = [CODES.headerMismatch, CODES.missingCapability, CODES.unsupportedVersion];

export async function findEra(way: Way): Promise<Verdict> {
  let target: Unasked = () => {};
  const wire = await way.open({ revision: undefined }, (frame) => target(frame));
  const spare = {
    wire,
    listen(unasked: Unasked) {
      target = unasked;
    },
  };
  const keep = async (era: Era): Promise<Verdict> => {
    if (way.kind === 'stdio') return { era, spare };
    await wire.close();
    return { era };
  };
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const outcome = await wire.request('probe', 'server/discover', DISCOVER, { signal, heard() {} });
    // Some older servers have an empty answer for whatever they do not know.
    const modern =
      'result' in outcome ? Array.isArray(outcome.result.supportedVersions) : KNOWN.includes(outcome.error.code);
    return await keep(modern ? 'modern' : 'legacy');
  } catch (thrown) {
    const fault = asFault(thrown);
    if (way.kind === 'http') {
      await wire.close();
      const { status } = (fault.details ?? {}) as { status?: number };
      if (status !== undefined && status >= 400 && status < 500 && status !== 401 && status !== 403) {
        return { era: 'legacy' };
      }
      throw fault;
    }
    // Silent, or dead of an unknown word: older programs are like that.
    await wire.close().catch(() => {});
    return { era: 'legacy' };
  }
}

const DISCOVER: JsonObject = {
  _meta: { [META.version]: MODERN, [META.capabilities]: {}, [META.client]: CLIENT_INFO },
};
