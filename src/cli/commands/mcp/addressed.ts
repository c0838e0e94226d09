/**
 * A server at an address, as `tollbridge init` writes it into a client's settings: the values of headers are in variables, and a
 * server that asks for a sign-in is signed in to by the gateway.
 */
import type { UpstreamConfig } from '../../../../adapters/mcp/index.ts';
import { SHORTEST_SECRET } from '../../../auth/vaults.ts';
import { Fault } from '../../../model/faults.ts';
import { own } from '../../../model/values/own.ts';
import type { Config } from '../../../runtime/config/config.ts';

const VAULT = 'client-settings';
/** All of them begin with the prefix of our own variables, which no child is given. */
const PREFIX = 'TOLLBRIDGE_HEADER_';

/** The values are secrets like those of any other vault: redacted wherever they would appear. No work may ask for them by name. */
export function withHeaderVault(config: Config): Config {
  return {
    ...config,
    vaults: [...config.vaults, { name: VAULT, provider: 'env', prefix: PREFIX, access: [] }],
  };
}

export interface AddressOptions {
  readonly transport?: string;
  readonly headerEnv?: readonly string[];
}

export function addressedUpstream(
  url: string,
  { transport = 'auto', headerEnv = [] }: AddressOptions = {},
  env: NodeJS.ProcessEnv = {},
): UpstreamConfig {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Fault('invalid_request', `${url} is not an address; it begins with https:// or http://`);
  const spoken = STREAMABLE.has(transport) ? 'streamable' : transport;
  if (spoken !== 'auto' && spoken !== 'streamable' && spoken !== 'sse')
    throw new Fault('invalid_request', `--transport is auto, streamable or sse, and not ${transport}`);
  const headers: Record<string, string> = {};
  const secrets: Record<string, string> = {};
  for (const [header, variable] of headerEnv.map(parts)) {
    const value = own(env, variable);
    if (value === undefined) throw new Fault('invalid_request', `${variable} is not set, which ${header} is to hold`);
    // Too short to be told apart from other text, so it cannot be redacted and is no secret.
    if (value.length < SHORTEST_SECRET) headers[header] = value;
    else secrets[header] = `${VAULT}:${variable.slice(PREFIX.length)}`;
  }
  const authorized = headerEnv.some((pair) => /^authorization=/i.test(pair));
  return {
    url,
    transport: spoken,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(Object.keys(secrets).length > 0 && { header_secrets: secrets }),
    // With a token from the client's settings there is no one to sign in.
    ...(!authorized && { sign_in: {} }),
  };
}

/** Clients have several words for it, and an entry of theirs keeps its own. */
const STREAMABLE: ReadonlySet<string> = new Set(['streamable', 'streamable-http', 'streamableHttp']);

function parts(pair: string): readonly [string, string] {
  const at = pair.indexOf('=');
  const [header, variable] = [pair.slice(0, Math.max(at, 0)), pair.slice(at + 1)];
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(header) && variable.startsWith(PREFIX) && variable !== PREFIX)
    return [header, variable];
  throw new Fault('invalid_request', `--header-env takes HEADER=${PREFIX}NAME, and not ${JSON.stringify(header)}=…`);
}
