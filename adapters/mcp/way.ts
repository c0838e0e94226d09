/** From what the configuration says to a wire: where the server is, what it is given, and never anything a caller sent. */
import { type Deps, Fault, VERSION } from '../../src/index.ts';
import { keepConnections } from '../../src/wire/kept-connections.ts';
import type { UpstreamConfig } from './config.ts';
import { advice, createSouthAuth, type SouthDeps } from './south-auth.ts';
import { openEither } from './south-either.ts';
import { openHttp, type Remote } from './south-http.ts';
import type { OpenWire } from './south-session.ts';
import { openSouthSse } from './south-sse.ts';
import { openStdio } from './south-stdio.ts';

export interface Way {
  readonly kind: 'http' | 'stdio';
  /** The host, where there is one to send to. */
  readonly host: string | undefined;
  readonly open: OpenWire;
}

/** Our name to servers that ask for one. */
export const CLIENT_INFO = { name: 'tollbridge', version: VERSION } as const;

/** What nearly every program needs; nothing else of ours is anyone's business. */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'TMPDIR'];
/** Of one frame of a server, twice what a result may have. A longer one is not read: parsing it would hold up everyone else. */
const FRAME_LIMIT = 8 * 1024 * 1024;

export function wayOf(name: string, config: UpstreamConfig, deps: SouthDeps): Way {
  if (Boolean(config.command) === Boolean(config.url)) {
    throw new Fault('invalid_request', 'say where the server is: either command or url');
  }
  const { command } = config;
  if (command) {
    return {
      kind: 'stdio',
      host: undefined,
      async open(_, unasked) {
        const env = { ...inherited(process.env), ...config.env, ...(await secrets(config.env_secrets, deps)) };
        const program = { command, env, lineLimit: FRAME_LIMIT, ...(config.cwd !== undefined && { cwd: config.cwd }) };
        return await openStdio(program, unasked, deps.log);
      },
    };
  }
  const url = new URL(config.url as string);
  const auth = createSouthAuth(name, url, config, deps);
  const limit = FRAME_LIMIT;
  const fixed = { ...basic(url), ...config.headers };
  const secretive = config.header_secrets ?? config.token ?? config.oauth ?? config.sign_in;
  const remote: Remote = {
    url,
    limit,
    connections: keepConnections(url.origin, limit),
    async headers() {
      return { ...fixed, ...(await secrets(config.header_secrets, deps)), ...(await auth.headers()) };
    },
    // Where nothing of it is secret there is nothing to look up, and nothing to wait for in every request.
    ...(secretive === undefined && { headers: () => fixed }),
    ...(auth.refused && { refused: auth.refused }),
    ...(config.sign_in && { advice: advice(name) }),
  };
  return { kind: 'http', host: url.host, open: openerFor(remote, config.transport ?? 'auto') };
}

function openerFor(remote: Remote, transport: NonNullable<UpstreamConfig['transport']>): OpenWire {
  /** Found out once; what a server had to be asked in the older way for, it is asked in that way from then on. */
  let older = transport === 'sse';
  return async (opened, unasked) => {
    if (older) return await openSouthSse(remote, unasked);
    const newer = openHttp(remote, opened, unasked);
    if (transport === 'streamable') return newer;
    return openEither(newer, async () => {
      const wire = await openSouthSse(remote, unasked);
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

function inherited(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    INHERITED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name] as string]])),
  );
}
