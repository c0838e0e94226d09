/** A running gateway: the runtime with everything the configuration mounts, and its doors on one port. */

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { adapters as everyAdapter } from '../../adapters/index.ts';
import { openApiKeys } from '../auth/api-keys.ts';
import { type ConsoleSessions, openConsoleSessions } from '../auth/console-sessions.ts';
import { createFailedLogins } from '../auth/failed-logins.ts';
import { consoleDoor } from '../console/door.ts';
import { systemClock } from '../core/clock.ts';
import type { Recovered } from '../core/tasks/recovery.ts';
import { LINK_PATH, linkDoor } from '../inbox/door.ts';
import { createLinks } from '../inbox/links.ts';
import { countOpenQuestions, openWebhooks } from '../inbox/webhook.ts';
import type { Adapter, Closable, Deps } from '../ports/index.ts';
import { openDuty } from '../replicas/duty.ts';
import { openReplicas, type Replicas } from '../replicas/replicas.ts';
import { isLoopback } from '../transport/http/origin.ts';
import { createHttpHost } from '../transport/http/server.ts';
import { openWitnessDoor } from '../witness/door.ts';
import { createHeadSender } from '../witness/send.ts';
import type { CoreRuntime } from './assemble.ts';
import { closeAll } from './close.ts';
import type { Config } from './config/config.ts';
import { consoleServices } from './console/console-services.ts';
import { createRuntime, createSurroundings } from './create-runtime.ts';
import { type Installation, openInstallation } from './installation/installation.ts';
import { createLogger } from './logger.ts';
import { upkeep } from './maintenance.ts';
import { mountsOf } from './mounts/mounts.ts';
import { openProbes } from './probes.ts';
import { linkSecret, recipientsOf, witnessesOf } from './serving/destinations.ts';
import { noteFailedLogin, requireAuthOffLoopback } from './serving/logins.ts';
import { exchangesTokens, prepared } from './serving/parts.ts';
import { readTls, watchTls } from './tls-files.ts';

export { adapters } from '../../adapters/index.ts';
export { readConfig } from './config/config.ts';

export interface GatewayOptions {
  /** Which protocols are spoken; the built-in adapters by default. */
  readonly adapters?: readonly Adapter[];
  /** The token for clients on this machine, where several processes share a port. Absent: one is made. */
  readonly token?: string;
  /** A file that gets one line for each effect a demo tool really had. */
  readonly journal?: string;
  /**
   * False for a process that only runs its own agents: orphaned work of other agents on the same log is left to their
   * processes.
   */
  readonly recoversOrphans?: boolean;
  /** False for a process whose only client is the program that started it: no port is opened. */
  readonly listens?: boolean;
}

export interface Gateway extends Closable {
  readonly core: CoreRuntime;
  readonly deps: Deps;
  /** Empty when it does not listen. */
  readonly url: string;
  /**
   * For a reader of this process's output: full access until the process ends. Undefined where unauthenticated callers
   * could try it.
   */
  readonly token: string | undefined;
  /** Makes a link that signs one browser in to the console, once. Undefined where unauthenticated callers could try it. */
  readonly consoleLink: (() => Promise<string>) | undefined;
  readonly recovered: Recovered;
  /** Questions that were open when it started. */
  readonly waiting: number;
}

export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const installation = await openInstallation(config);
  try {
    const gateway = await start(config, options, installation);
    return { ...gateway, close: () => gateway.close().finally(installation.close) };
  } catch (cause) {
    await installation.close();
    throw cause;
  }
}

async function start(config: Config, options: GatewayOptions, installation: Installation): Promise<Gateway> {
  const { journal, adapters = everyAdapter, recoversOrphans = true, listens = true } = options;
  const { files } = installation;
  const local = isLoopback(config.host);
  const keys = openApiKeys(files, systemClock);
  if (!local) await requireAuthOffLoopback(config, keys);
  const mounts = mountsOf(config, adapters);
  const token = local ? (options.token ?? randomBytes(24).toString('base64url')) : undefined;
  const surroundings = createSurroundings(createLogger);
  const { redactor, logger, ids } = surroundings;
  if (token) redactor.learn(token);
  const pair = config.tls && (await readTls(config.tls));
  if (!local && !pair) {
    logger.warn(
      { host: config.host },
      'this port speaks plain HTTP: put a proxy that ends TLS in front, or set listen.tls',
    );
  }
  const http = createHttpHost({
    ...(pair && config.tls && { tls: { ...pair, hstsSeconds: config.tls.hstsSeconds } }),
    host: config.host,
    port: config.port,
    ...(config.publicUrl && { publicUrl: config.publicUrl }),
    allowedHosts: config.allowedHosts,
    allowedOrigins: config.allowedOrigins,
    authenticated: true,
    ...(config.drainMs !== undefined && { leaveMs: config.drainMs }),
    ...config.limits,
    requestId: () => ids.next('req'),
    log: logger,
  });
  /** Set once, below, when the store is open. */
  const joined: { replicas?: Replicas } = {};
  const retention = { ms: config.keepEventsMs };
  const exchanging = { on: exchangesTokens(config) };
  const failures = createFailedLogins({
    now: () => performance.now(),
    pause: (ms) => sleep(ms),
    // Called only after a login can fail, which is after everything is open.
    write: (failed) =>
      noteFailedLogin(runtime.core.log, failed).catch((cause) =>
        logger.error({ err: cause }, 'a failed login could not be written down'),
      ),
  });
  /** The last use of each key, as far as this process has seen. */
  const lastUse = new Map<string, string>();
  const keyUsed = (id: string) => void lastUse.set(id, systemClock.now());
  const sessions = openConsoleSessions({ files, clock: systemClock, keyActor: keys.activeActor });
  const runtime = await createRuntime(config, {
    ...surroundings,
    installation,
    name: 'gateway',
    mounts: 'everything',
    adapters,
    serving: true,
    settings: { defaultAgent: config.defaultAgent, recoversOrphans: recoversOrphans },
    prepare: (services) =>
      prepared(config, mounts, services, {
        http,
        files,
        token,
        journal,
        failures,
        sessions,
        keyUsed,
        exchanges: () => exchanging.on,
        hold: async (key) => (await joined.replicas?.hold(key)) ?? '',
      }),
    taken(next) {
      const same = retention.ms === next.keepEventsMs;
      retention.ms = next.keepEventsMs;
      exchanging.on = exchangesTokens(next);
      return same ? [] : ['retention'];
    },
  });
  const { bridge, core, actor, deps, recovered } = runtime;
  const renewing = config.tls ? [watchTls(config.tls, (next) => http.renew(next), logger)] : [];
  const opened: Closable[] = [...renewing, http, { close: async () => failures.close() }];
  try {
    if (listens) {
      // Before the doors: the names they give out say which replica gave them.
      joined.replicas = await openReplicas({
        store: core.store,
        commit: core.log.commit,
        ids,
        clock: systemClock,
        log: logger,
        directory: config.dataDir,
        secret: await linkSecret(config, deps.secret, core.keyring),
        ...(config.replicas.tcp && { tcp: config.replicas.tcp }),
        serve: http.serve,
      });
      http.join(joined.replicas.link);
      openProbes(http, () => core.store.trouble());
    }
    const waiting = await countOpenQuestions(bridge, actor);
    for (const door of runtime.prepared.doors) opened.unshift(await door.open(bridge));
    const { store, keyring } = core;
    openWitnessDoor({ ...deps, store, dir: join(config.dataDir, 'witness') });
    const witnesses = await witnessesOf(config, deps.secret);
    const heads = createHeadSender({ witnesses, store, keys: () => keyring.jwks(), logger });
    const duty = (name: string, begin: () => Closable) => openDuty({ name, store, log: logger, begin });
    opened.unshift(
      await duty('upkeep', () => upkeep(core, { keepEventsMs: () => retention.ms, logger, signed: heads.send })),
    );
    const links = createLinks((text) => core.keyring.signer().mac(text));
    const linked = Object.entries(config.webhooks).flatMap(([name, hook]) => (hook.links ? [name] : []));
    if (linked.length > 0)
      opened.unshift(
        await linkDoor({ http: deps.http, log: logger, clock: systemClock, links, recipients: linked }).open(bridge),
      );
    const doors = runtime.prepared.doors.map(({ name }) => name);
    const services = consoleServices({ runtime, sessions, keys, doors, adapters, witnesses: heads.states, lastUse });
    // The console is a client of the native door, and is not there without it.
    const console = doors.includes('harn');
    if (console)
      opened.unshift(await consoleDoor({ http: deps.http, log: logger, clock: systemClock, services }).open(bridge));
    const { url } = listens ? await http.listen() : http;
    // Servers start before the first client asks for their tools, unless few programs may run: then their places are for calls.
    const { children = Number.POSITIVE_INFINITY } = config.limits;
    if (listens && doors.includes('mcp') && children >= PROGRAMS_PER_SERVER * Object.keys(config.tools).length)
      void bridge.tools(actor).catch((cause) => logger.warn({ err: cause }, 'tools could not be listed'));
    const reachable = http.url;
    const linkTo = (name: string, ask: string) => `${reachable}${LINK_PATH}/${links.token(name, ask)}`;
    const recipients = await recipientsOf(config, deps.secret, reachable ? linkTo : undefined);
    if (recipients.length > 0)
      opened.unshift(
        await duty('webhooks', () =>
          openWebhooks({ bridge, actor, recipients, clock: systemClock, log: logger, pause }),
        ),
      );
    let closed: Promise<void> | undefined;
    return {
      core,
      deps,
      url,
      token,
      consoleLink: local && console ? async () => consoleLink(reachable, sessions) : undefined,
      recovered,
      waiting,
      close() {
        // The others take over while the doors still end what is open here.
        closed ??= http
          .drain()
          .then(() => closeAll([...(joined.replicas ? [joined.replicas] : []), ...opened, runtime], logger));
        return closed;
      },
    };
  } catch (cause) {
    await closeAll([...(joined.replicas ? [joined.replicas] : []), ...opened, runtime], logger);
    throw cause;
  }
}

/** The code is behind the `#`: browsers do not send that part, so no proxy and no log sees it. */
export async function consoleLink(url: string, sessions: Pick<ConsoleSessions, 'createCode'>): Promise<string> {
  return `${url}/sign-in#${await sessions.createCode()}`;
}

const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal });

/** One that lists tools, and one for each of a few clients. */
const PROGRAMS_PER_SERVER = 4;
