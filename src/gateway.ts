/** A running gateway: the house, the agents and tools mounted in it, and its doors on one port. Composition, no logic. */
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { adapters as everyAdapter } from '../adapters/index.ts';
import { openApiKeys } from './auth/api-keys.ts';
import { createAuthenticator } from './auth/authenticate.ts';
import { createKeeper, createSecrets } from './auth/vaults.ts';
import { createLogger } from './cli/logger.ts';
import { type House, openHouse, type Parts, SERVING_ROOM } from './compose.ts';
import type { Config } from './config.ts';
import { createIds, systemClock } from './core/clock.ts';
import type { Recovered } from './core/recovery.ts';
import { createRedactor } from './core/redact.ts';
import { RESULT_LIMITS } from './core/result-size.ts';
import { declare } from './declare.ts';
import { createDemoAgent } from './demo/agent.ts';
import { createHandOver } from './demo/hand-over.ts';
import { createDemoTools } from './demo/tools.ts';
import { LINK_PATH, linkDoor } from './inbox/door.ts';
import { createLinks } from './inbox/links.ts';
import { openWebhooks, type Recipient } from './inbox/webhook.ts';
import type { Actor } from './model/actions.ts';
import { Fault } from './model/faults.ts';
import { mountsOf } from './mounts.ts';
import { createParts } from './parts.ts';
import type { Adapter, Closable, Deps, Logger, PolicyEngine } from './ports.ts';
import { reloading } from './reload.ts';
import { requireRules } from './rules-on-record.ts';
import { upkeep } from './upkeep.ts';
import { VERSION } from './version.ts';
import { capChildren } from './wire/child.ts';
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

/** The house itself, when it sets something up or looks after it. */
const KEEPER: Actor = { id: 'system:gateway', kind: 'system', scopes: ['*'] };

export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const { journal, adapters = everyAdapter, keeper = true } = options;
  const local = isLoopback(config.host);
  if (!local) await requireStrangersToProveThemselves(config);
  if (config.limits.children !== undefined) capChildren(config.limits.children);
  const mounts = mountsOf(config, adapters);
  const redactor = createRedactor();
  const logger = createLogger(redactor);
  const token = local ? randomBytes(24).toString('base64url') : undefined;
  if (token) redactor.learn(token);
  const ids = createIds();
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
  const places = { vaults: config.vaults, env: process.env, learn: redactor.learn };
  const secret = createSecrets(places);
  const traced = await tracing(config, secret);
  const deps: Deps = {
    log: logger,
    clock: systemClock,
    ids,
    http: traced?.http(http) ?? http,
    authenticate: createAuthenticator({
      dataDir: config.dataDir,
      clock: systemClock,
      ...(token && { localToken: token }),
      ...(config.oauth && { oauth: config.oauth }),
    }),
    jwks: () => house.keyring.jwks(),
    sign: (text) => house.keyring.signer().sign(text),
    mac: (text) => house.keyring.signer().mac(text),
    trouble: () => house.store.trouble(),
    lease: (name) => house.store.lease(name),
    ...(traced && { inTrace: traced.inTrace }),
    secret,
    ...createKeeper({ ...places, clock: systemClock }),
  };
  const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal });
  const handOver = createHandOver(() => house.bridge);
  const demo = {
    agents: [createDemoAgent({ pause, handOver }), createDemoAgent({ pause, name: 'second' })],
    tools: [createDemoTools(journal ? { journal: (line) => appendFileSync(journal, `${line}\n`) } : {})],
  };
  const parts = createParts(deps);
  const ownTools = mounts.doors.flatMap(
    ({ adapter, section, open }) => (open && adapter.ownTools?.(section, deps)) || [],
  );
  const built = {
    backends: config.demo ? demo.agents : [],
    tools: [...(config.demo ? demo.tools : []), ...ownTools],
  };
  const dressed = ({ backends, tools, engines }: Parts): Parts =>
    traced
      ? { backends: backends.map(traced.backend), tools: tools.map(traced.tools), engines }
      : { backends, tools, engines };
  const taken = parts.take(mounts, built);
  const plain: House = await openHouse({
    dataDir: config.dataDir,
    place: config.store,
    roomBytes: SERVING_ROOM,
    policy: config.policy,
    logger,
    redactor,
    ids,
    ...dressed(taken),
    settings: {
      defaultAgent: config.defaultAgent,
      keeper,
      ...(config.limits.resultSize && { resultLimits: { ...RESULT_LIMITS, size: config.limits.resultSize } }),
      ...(config.autonomy && { defaultTier: config.autonomy }),
      ...(config.askExpiresMs && { askExpiresMs: config.askExpiresMs }),
    },
  });
  const house: House = traced ? { ...plain, bridge: traced.bridge(plain.bridge) } : plain;
  const opened: Closable[] = [http];
  try {
    await requireRules(house.policy);
    const recovered = await house.start();
    await haveWorkspace(house);
    const waiting = await openQuestions(house);
    await declare(house.bridge, KEEPER, config, systemClock);
    const told = new WeakSet<PolicyEngine>();
    const tell = (engines: readonly PolicyEngine[]) => {
      for (const engine of engines) if (!told.has(engine)) engine.listen?.(house.bridge, KEEPER);
      for (const engine of engines) told.add(engine);
    };
    tell(taken.engines);
    for (const { adapter, section, open } of mounts.doors) {
      const opening = open && adapter.door?.(section, deps);
      if (opening) opened.unshift(await opening.open(house.bridge));
    }
    let keepEventsMs = config.keepEventsMs;
    opened.unshift(upkeep(house, () => keepEventsMs, logger));
    const links = createLinks((text) => house.keyring.signer().mac(text));
    const linked = Object.entries(config.webhooks).flatMap(([name, hook]) => (hook.links ? [name] : []));
    if (linked.length > 0)
      opened.unshift(
        await linkDoor({ http: deps.http, log: logger, clock: systemClock, links, recipients: linked }).open(
          house.bridge,
        ),
      );
    const { url } = await http.listen();
    const recipients = await recipientsOf(config, secret, (name, ask) => {
      return `${config.publicUrl ?? url}${LINK_PATH}/${links.token(name, ask)}`;
    });
    if (recipients.length > 0)
      opened.unshift(
        openWebhooks({ bridge: house.bridge, actor: KEEPER, recipients, clock: systemClock, log: logger, pause }),
      );
    const live = reloading({
      config,
      store: house.store,
      log: logger,
      async take(next) {
        const now = parts.take(mountsOf(next, adapters), built);
        house.remount(dressed(now));
        now.settle();
        tell(now.engines);
        const kept = keepEventsMs;
        keepEventsMs = next.keepEventsMs;
        const declared = await declare(house.bridge, KEEPER, next, systemClock);
        return [...now.changed, ...declared, ...(kept === keepEventsMs ? [] : ['retention'])];
      },
    });
    opened.unshift(live);
    let closed: Promise<void> | undefined;
    return {
      house,
      url,
      token,
      recovered,
      waiting,
      close() {
        closed ??= closeAll([...opened, house, parts, ...(traced ? [traced] : [])], logger);
        return closed;
      },
    };
  } catch (cause) {
    await closeAll([...opened, house, parts, ...(traced ? [traced] : [])], logger);
    throw cause;
  }
}

async function openQuestions({ bridge }: House): Promise<number> {
  let count = 0;
  let after: string | undefined;
  do {
    const where = { state: 'open' };
    const page = await bridge.list(KEEPER, { object: 'ask', where, limit: 200, ...(after && { after }) });
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

/** Somewhere to begin: a first session needs a workspace, and nobody should have to know that. */
async function haveWorkspace({ bridge }: House): Promise<void> {
  const any = await bridge.list(KEEPER, { object: 'workspace', limit: 1 });
  if (any.data.length > 0) return;
  const body = {
    object: 'workspace' as const,
    id: 'workspace_default',
    body: { name: 'default', root: 'tollbridge://default' },
  };
  await bridge.submit({ kind: 'resource.create', actor: KEEPER, body });
}

/** Every part gets its chance to close, whatever the one before it did. */
async function closeAll(parts: readonly Closable[], logger: Logger): Promise<void> {
  for (const part of parts) {
    try {
      await part.close();
    } catch (cause) {
      logger.error({ err: cause }, 'closing a part of the gateway failed');
    }
  }
}
