/**
 * Detects whether a server speaks the modern era, with one request that only this era has. A failure to reach the server, or a
 * refusal of our credentials, says nothing about its era, which then stays unknown.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { CODES, type Era, META, MODERN } from '../../../mappings/mcp.ts';
import { asFault, type JsonObject } from '../../../src/index.ts';
import type { FrameOutcome } from '../frames.ts';
import { CLIENT_INFO, type Transport } from './transport/create-transport.ts';
import type { Unasked, Wire } from './transport/transport.ts';

export interface DetectedEra {
  readonly era: Era;
  /** The connection used for detection, where it can be reused; `listen` gives it to another listener. */
  readonly spare?: { readonly wire: Wire; listen(unasked: Unasked): void };
}

/** A server over HTTP runs already, but may have to be woken up. */
const TIMEOUT_MS = 30_000;
/**
 * Some older programs ignore an unknown method. A program may also take this long to start, so it is not ended for its silence: the
 * same one is addressed in the older era.
 */
const SILENT_MS = 30_000;
const KNOWN: readonly number[] = [CODES.headerMismatch, CODES.missingCapability, CODES.unsupportedVersion];

export async function findEra(transport: Transport): Promise<DetectedEra> {
  let target: Unasked = () => {};
  const wire = await transport.open({ revision: undefined }, (frame) => target(frame));
  if (transport.kind === 'http') return await overHttp(wire);
  const spare = {
    wire,
    listen(unasked: Unasked) {
      target = unasked;
    },
  };
  try {
    return { era: await ofProgram(wire), spare };
  } catch {
    // The program has exited: some older ones do on an unknown method.
    await wire.close().catch(() => {});
    return { era: 'legacy' };
  }
}

async function overHttp(wire: Wire): Promise<DetectedEra> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const outcome = await wire.request('probe', 'server/discover', DISCOVER, { signal, received() {} });
    return { era: eraIn(outcome) };
  } catch (thrown) {
    const fault = asFault(thrown);
    const { status } = (fault.details ?? {}) as { status?: number };
    if (status !== undefined && status >= 400 && status < 500 && status !== 401 && status !== 403) {
      return { era: 'legacy' };
    }
    throw fault;
  } finally {
    await wire.close();
  }
}

async function ofProgram(wire: Wire): Promise<Era> {
  const over = new AbortController();
  try {
    // The request is not canceled: some older programs exit on a notification before the session is open.
    const probe = wire.request('probe', 'server/discover', DISCOVER, {
      signal: new AbortController().signal,
      received() {},
    });
    const silence = pause(SILENT_MS, 'legacy' as const, { signal: over.signal, ref: false });
    silence.catch(() => {});
    return await Promise.race([probe.then(eraIn), silence]);
  } finally {
    over.abort();
  }
}

/** Some older servers answer unknown methods with an empty result. */
function eraIn(outcome: FrameOutcome): Era {
  const modern =
    'result' in outcome ? Array.isArray(outcome.result.supportedVersions) : KNOWN.includes(outcome.error.code);
  return modern ? 'modern' : 'legacy';
}

const DISCOVER: JsonObject = {
  _meta: { [META.version]: MODERN, [META.capabilities]: {}, [META.client]: CLIENT_INFO },
};
