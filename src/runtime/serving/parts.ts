/** The parts a gateway adds to its runtime: doors on a port, authentication, the built-in agents, and traces when configured. */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAuthenticator } from '../../auth/authenticate.ts';
import type { ConsoleSessions } from '../../auth/console-sessions.ts';
import type { FailedLogins } from '../../auth/failed-logins.ts';
import { systemClock } from '../../core/clock.ts';
import { createDemoAgent } from '../../demo/agent.ts';
import { createHandOver } from '../../demo/hand-over.ts';
import { createDemoTools } from '../../demo/tools.ts';
import { Fault } from '../../model/faults.ts';
import { isObject } from '../../model/values/is-object.ts';
import { VERSION } from '../../model/version.ts';
import type { Authenticate, Deps, FrontDoor, HttpHost, PrivateFiles } from '../../ports/index.ts';
import type { Config } from '../config/config.ts';
import type { Prepared, Services } from '../create-runtime.ts';
import type { Mounts } from '../mounts/mounts.ts';

interface Brought {
  readonly http: HttpHost;
  readonly files: PrivateFiles;
  readonly token: string | undefined;
  readonly journal: string | undefined;
  readonly failures: FailedLogins;
  readonly sessions: ConsoleSessions;
  readonly keyUsed: (id: string) => void;
  readonly exchanges: () => boolean;
  readonly hold: NonNullable<Deps['hold']>;
}

/** Whether a tool server is used with tokens that were exchanged for those of the callers. */
export function exchangesTokens({ tools }: Config): boolean {
  return Object.values(tools).some((section) =>
    Object.values(section).some((each) => isObject(each) && each.exchange !== undefined),
  );
}

export async function prepared(
  config: Config,
  mounts: Mounts,
  services: Services,
  brought: Brought,
): Promise<Prepared & { readonly doors: readonly FrontDoor[] }> {
  const { http, files, token, journal, failures, sessions, exchanges, keyUsed, hold } = brought;
  const traced = await tracing(config, services.deps.secret);
  const deps: Deps = {
    ...services.deps,
    http: traced?.http(http) ?? http,
    authenticate: createAuthenticator({
      files,
      clock: systemClock,
      failures,
      sessions,
      keyUsed,
      ...(token && { localToken: token }),
      ...(config.oauth && { oauth: config.oauth, exchanges }),
    }),
    oauth: config.oauth !== undefined,
    hold,
    ...(traced && { inTrace: traced.inTrace }),
  };
  const handOver = createHandOver(() => services.bridge());
  const demo = config.demo
    ? {
        agents: [createDemoAgent({ pause, handOver }), createDemoAgent({ pause, name: 'second' })],
        tools: [createDemoTools(journal ? { journal: (line) => appendFileSync(journal, `${line}\n`) } : {})],
      }
    : { agents: [], tools: [] };
  const doors = doorsOf(mounts, deps);
  return {
    deps,
    doors,
    backends: demo.agents,
    tools: [...demo.tools, ...doors.flatMap(({ tools = [] }) => tools)],
    instrument: traced && {
      parts: ({ backends, tools, ...rest }) => ({
        ...rest,
        backends: backends.map(traced.backend),
        tools: tools.map(traced.tools),
      }),
      bridge: traced.bridge,
      close: () => traced.close(),
    },
  };
}

/** Each door authenticates as itself, because a credential may be limited to some doors. */
function doorsOf({ doors }: Mounts, deps: Deps): readonly FrontDoor[] {
  return doors
    .filter(({ shut }) => !shut)
    .map(({ name, open }) => {
      const authenticate: Authenticate = (bearer, from) => deps.authenticate(bearer, { ...from, door: name });
      return open({ ...deps, authenticate });
    });
}

const NO_EXPORTER =
  'telemetry.traces needs packages that are not here: npm install @opentelemetry/exporter-trace-otlp-http @opentelemetry/resources @opentelemetry/sdk-trace';

/** The telemetry SDK is 25 MB: it is installed by those who configure a collector, and loaded only then. */
async function tracing({ traces }: Config, secret: Deps['secret']) {
  if (!traces) return undefined;
  const { openTelemetry } = await import('../../telemetry/otlp.ts').catch((cause: unknown) => {
    throw new Fault('invalid_request', NO_EXPORTER, { cause });
  });
  const headers: Record<string, string> = {};
  for (const [name, from] of Object.entries(traces.headers ?? {})) headers[name] = await secret(from);
  const { endpoint, service_name } = traces;
  return openTelemetry({ endpoint, headers, version: VERSION, ...(service_name && { serviceName: service_name }) });
}

const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal });
