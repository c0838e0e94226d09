/** A running gateway: the runtime with everything the configuration mounts, and its doors on one port. */
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { adapters as everyAdapter } from '../adapters/index.ts';
import { openApiKeys } from './auth/api-keys.ts';
import { createAuthenticator } from './auth/authenticate.ts';
import { createFailedLogins, type FailedLoginNote, type FailedLogins } from './auth/failed-logins.ts';
import { createLogger } from './cli/logger.ts';
import { type House, SERVING_ROOM } from './compose.ts';
import type { Config } from './config.ts';
import { systemClock } from './core/clock.ts';
import type { Recovered } from './core/recovery.ts';
import { createDemoAgent } from './demo/agent.ts';
import { createHandOver } from './demo/hand-over.ts';
import { createDemoTools } from './demo/tools.ts';
import { LINK_PATH, linkDoor } from './inbox/door.ts';
import { createLinks } from './inbox/links.ts';
import { openWebhooks, type Recipient } from './inbox/webhook.ts';
import type { Actor } from './model/actions.ts';
import { Fault } from './model/faults.ts';
import type { JsonObject } from './model/schema.ts';
import { type Mounts, mountsOf } from './mounts.ts';
import type { Adapter, Authenticate, Bridge, Closable, Deps, HttpHost } from './ports.ts';
import { closeAll } from './runtime/close.ts';
import { createRuntime, createSurroundings, type Prepared, type Services } from './runtime/create.ts';
import { upkeep } from './upkeep.ts';
import { VERSION } from './version.ts';
import { createHttpHost } from './wire/http.ts';
import { isLoopback } from './wire/origin.ts';

export { adapters } from '../adapters/index.ts';
export { readConfig } from './config.ts';

export interface GatewayOptions {
  /** Which protocols are spoken; those of this house unless said otherwise. */
  readonly adapters?: readonly Adapter<never>[];
  /** A file that gets one line for each effect a demo tool really had. */
  readonly journal?: string;
  /** False for one that is only there for its own agents: work of others on the same log is left to whoever has them. */
  readonly keeper?: boolean;
}

export interface Gateway extends Closable {
  readonly house: House;
  readonly url: string;
  /** For whoever may read this process's output: everything, until the process ends. None where strangers could try it. */
  readonly token: string | undefined;
  readonly recovered: Recovered;
  /** Questions that were open when it started. */
  readonly waiting: number;
}

export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const { journal, adapters = everyAdapter, keeper = true } = options;
  const local = isLoopback(config.host);
  if (!local) await requireStrangersToProveThemselves(config);
  const mounts = mountsOf(config, adapters);
  const token = local ? randomBytes(24).toString('base64url') : undefined;
  const surroundings = createSurroundings(createLogger);
  const { redactor, logger, ids } = surroundings;
  if (token) redactor.learn(token);
  const http = createHttpHost({
    host: config.host,
    port: config.port,
    allowedHosts: config.allowedHosts,
    allowedOrigins: config.allowedOrigins,
    authenticated: true,
    ...config.limits,
    requestId: () => ids.next('req'),
    log: logger,
  });
  const retention = { ms: config.keepEventsMs };
  const failures = createFailedLogins({
    now: () => performance.now(),
    pause: (ms) => sleep(ms),
    // Called once somebody can fail to log in, which is after everything is open.
    write: (failed) =>
      noteFailedLogin(runtime.house.log, failed).catch((cause) =>
        logger.error({ err: cause }, 'a failed login could not be written down'),
      ),
  });
  const runtime = await createRuntime(config, {
    ...surroundings,
    name: 'gateway',
    mounts: 'everything',
    adapters,
    roomBytes: SERVING_ROOM,
    settings: { defaultAgent: config.defaultAgent, keeper },
    prepare: (services) => prepared(config, mounts, services, { http, token, journal, failures }),
    taken(next) {
      const same = retention.ms === next.keepEventsMs;
      retention.ms = next.keepEventsMs;
      return same ? [] : ['retention'];
    },
  });
  const { bridge, house, actor, deps, recovered } = runtime;
  const opened: Closable[] = [http, { close: async () => failures.close() }];
  try {
    const waiting = await openQuestions(bridge, actor);
    for (const { adapter, section, open } of mounts.doors) {
      // Each door authenticates as itself: a credential may be limited to others.
      const door = adapter.name;
      const at: Deps = {
        ...deps,
        authenticate: ((bearer, from) => deps.authenticate(bearer, { ...from, door })) as Authenticate,
      };
      const opening = open && adapter.door?.(section, at);
      if (opening) opened.unshift(await opening.open(bridge));
    }
    opened.unshift(upkeep(house, () => retention.ms, logger));
    const links = createLinks((text) => house.keyring.signer().mac(text));
    const linked = Object.entries(config.webhooks).flatMap(([name, hook]) => (hook.links ? [name] : []));
    if (linked.length > 0)
      opened.unshift(
        await linkDoor({ http: deps.http, log: logger, clock: systemClock, links, recipients: linked }).open(bridge),
      );
    const { url } = await http.listen();
    const recipients = await recipientsOf(config, deps.secret, (name, ask) => {
      return `${config.publicUrl ?? url}${LINK_PATH}/${links.token(name, ask)}`;
    });
    if (recipients.length > 0)
      opened.unshift(openWebhooks({ bridge, actor, recipients, clock: systemClock, log: logger, pause }));
    let closed: Promise<void> | undefined;
    return {
      house,
      url,
      token,
      recovered,
      waiting,
      close() {
        closed ??= closeAll([...opened, runtime], logger);
        return closed;
      },
    };
  } catch (cause) {
    await closeAll([...opened, runtime], logger);
    throw cause;
  }
}

interface Brought {
  readonly http: HttpHost;
  readonly token: string | undefined;
  readonly journal: string | undefined;
  readonly failures: FailedLogins;
}

/** What a gateway brings to its runtime: a port, callers who are told apart, the built-in agents, and traces when they are wanted. */
async function prepared(config: Config, mounts: Mounts, services: Services, brought: Brought): Promise<Prepared> {
  const { http, token, journal, failures } = brought;
  const traced = await tracing(config, services.deps.secret);
  const deps: Deps = {
    ...services.deps,
    http: traced?.http(http) ?? http,
    authenticate: createAuthenticator({
      dataDir: config.dataDir,
      clock: systemClock,
      failures,
      ...(token && { localToken: token }),
      ...(config.oauth && { oauth: config.oauth }),
    }),
    ...(traced && { inTrace: traced.inTrace }),
  };
  const handOver = createHandOver(() => services.bridge());
  const demo = config.demo
    ? {
        agents: [createDemoAgent({ pause, handOver }), createDemoAgent({ pause, name: 'second' })],
        tools: [createDemoTools(journal ? { journal: (line) => appendFileSync(journal, `${line}\n`) } : {})],
      }
    : { agents: [], tools: [] };
  const ownTools = mounts.doors.flatMap(
    ({ adapter, section, open }) => (open && adapter.ownTools?.(section, deps)) || [],
  );
  return {
    deps,
    backends: demo.agents,
    tools: [...demo.tools, ...ownTools],
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

const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal });

async function openQuestions(bridge: Bridge, actor: Actor): Promise<number> {
  let count = 0;
  let after: string | undefined;
  do {
    const where = { state: 'open' };
    const page = await bridge.list(actor, { object: 'ask', where, limit: 200, ...(after && { after }) });
    count += page.data.length;
    after = page.next;
  } while (after);
  return count;
}

/** Who is told of questions, each with its key; one whose key is missing stops the start, not the question. */
async function recipientsOf(
  { webhooks }: Config,
  secret: Deps['secret'],
  linkTo: (name: string, askId: string) => string,
) {
  return await Promise.all(
    Object.entries(webhooks).map(async ([name, { url, secret: key, links }]): Promise<Recipient> => {
      const link = links ? (askId: string) => linkTo(name, askId) : undefined;
      return { name, url, key: await secret(key), link };
    }),
  );
}

/** Nothing of it is loaded unless a collector is named. */
async function tracing({ traces }: Config, secret: Deps['secret']) {
  if (!traces) return undefined;
  const { openTelemetry } = await import('./telemetry/otlp.ts');
  const headers: Record<string, string> = {};
  for (const [name, from] of Object.entries(traces.headers ?? {})) headers[name] = await secret(from);
  const { endpoint, service_name } = traces;
  return openTelemetry({ endpoint, headers, version: VERSION, ...(service_name && { serviceName: service_name }) });
}

/** A token that was printed here proves nothing to someone elsewhere; whoever comes from there needs one of their own. */
async function requireStrangersToProveThemselves({ host, dataDir, oauth }: Config): Promise<void> {
  if (oauth) return;
  const keys = await openApiKeys(dataDir, systemClock).list();
  if (keys.some(({ state }) => state === 'active')) return;
  throw new Fault(
    'permission_denied',
    `${host} can be reached by others and there is no way to tell who they are: make a key with "tollbridge keys create NAME --scope ...", or configure auth.oauth, or listen on 127.0.0.1`,
  );
}

async function noteFailedLogin(log: House['log'], { doors, ...failed }: FailedLoginNote): Promise<void> {
  const event = {
    event: 'vendor.tollbridge.login_failed',
    resource: { object: 'door', id: doors[0] ?? 'unknown' },
    payload: { doors, ...failed } as unknown as JsonObject,
  };
  await log.commit({ decide: () => ({ events: [event] }) });
}
