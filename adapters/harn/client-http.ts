/** A remote Harness over HTTP: the version it is spoken to in, and its refusals in its own words. */
import { RECEIPT_JSON, VERSION_HEADER } from '../../mappings/harn.ts';
import { type JsonObject, PROTOCOL_VERSION } from '../../src/index.ts';
import { createRemote, type Remote, type RemoteOptions } from '../../src/wire/remote.ts';

export function createHarnRemote(options: Pick<RemoteOptions, 'base' | 'token' | 'requestMs'>): Remote {
  return createRemote({
    ...options,
    headers: { [VERSION_HEADER]: PROTOCOL_VERSION },
    accept: `application/json, ${RECEIPT_JSON};q=0.1`,
    refusal,
  });
}

function refusal(body: unknown): { readonly code: string; readonly message: string } {
  const { error } = (body ?? {}) as { error?: JsonObject | string };
  const told = typeof error === 'object' && error !== null ? error : {};
  return {
    code: typeof told.code === 'string' ? told.code : '',
    message: typeof told.message === 'string' ? told.message : typeof error === 'string' ? error : '',
  };
}
