/** Creates the transport that the configuration describes: the server's location and credentials, and nothing a caller sent. */
import { type Deps, Fault, VERSION } from '../../../../src/index.ts';
import { keepConnections } from '../../../../src/transport/outbound/kept-connections.ts';
import { minimalEnvironment } from '../../../../src/transport/process/environment.ts';
import type { UpstreamConfig } from '../../config.ts';
import { advice, createUpstreamAuth, type UpstreamAuthDeps } from '../auth/auth.ts';
import type { OpenWire } from '../legacy-session.ts';
import { openEither } from './either.ts';
import { type HttpUpstream, openHttp } from './http.ts';
import { openSseTransport } from './sse.ts';
import { openStdio } from './stdio.ts';

export interface Transport {
  readonly kind: 'http' | 'stdio';
  /** The host, for servers over HTTP. */
  readonly host: string | undefined;
  readonly open: OpenWire;
}

/** The gateway's client info, for servers that ask for it. */
export const CLIENT_INFO = { name: 'tollbridge', version: VERSION } as const;

/** The size limit of one frame: twice that of a result. A longer frame is not read, because parsing it would block all other work. */
const FRAME_LIMIT = 8 * 1024 * 1024;

export function transportFor(name: string, config: UpstreamConfig, deps: UpstreamAuthDeps): Transport {
  if (Boolean(config.command) === Boolean(config.url)) {
    throw new Fault('invalid_request', 'say where the server is: either command or url');
  }
  const { command } = config;
  if (command) {
    return {
      kind: 'stdio',
      host: undefined,
      async open(_, unasked) {
        const env = { ...minimalEnvironment(), ...config.env, ...(await secrets(config.env_secrets, deps)) };
        const program = { command, env, lineLimit: FRAME_LIMIT, ...(config.cwd !== undefined && { cwd: config.cwd }) };
        return await openStdio(program, unasked, deps.log);
      },
    };
  }
  const programs =
    config.share !== undefined ? 'share' : config.max_children !== undefined ? 'max_children' : undefined;
  if (programs) throw new Fault('invalid_request', `${programs} is about programs: a server with a url has none`);
  const url = new URL(config.url as string);
  const auth = createUpstreamAuth(name, url, config, deps);
  const limit = FRAME_LIMIT;
  const fixed = { ...basic(url), ...config.headers };
  const secretive = deps.auth ?? config.header_secrets ?? config.token ?? config.oauth ?? config.sign_in;
  const remote: HttpUpstream = {
    url,
    limit,
    connections: keepConnections(url.origin, limit),
    async headers() {
      // First, so that nothing is looked up for a caller without credentials.
      const credentials = await auth.headers();
      return { ...fixed, ...(await secrets(config.header_secrets, deps)), ...credentials };
    },
    // Without secret headers there is nothing to look up, and no request has to await it.
    ...(secretive === undefined && { headers: () => fixed }),
    ...(auth.refused && { refused: auth.refused }),
    ...(config.sign_in && { advice: advice(name) }),
  };
  return { kind: 'http', host: url.host, open: openerFor(remote, config.transport ?? 'auto') };
}

function openerFor(remote: HttpUpstream, transport: NonNullable<UpstreamConfig['transport']>): OpenWire {
  /** Detected once: a server that needed the older transport is addressed with it from then on. */
  let older = transport === 'sse';
  return async (opened, unasked) => {
    if (older) return await openSseTransport(remote, unasked);
    const newer = openHttp(remote, opened, unasked);
    if (transport === 'streamable') return newer;
    return openEither(newer, async () => {
      const wire = await openSseTransport(remote, unasked);
      older = true;
      return wire;
    });
  };
}

/** A name and a password that stand in the address itself. */
function basic({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

async function secrets(
  names: Readonly<Record<string, string>> | undefined,
  { secret }: Pick<Deps, 'secret'>,
): Promise<Record<string, string>> {
  const pairs = Object.entries(names ?? {}).map(async ([key, name]) => [key, await secret(name)] as const);
  return Object.fromEntries(await Promise.all(pairs));
}
