/** A running gateway: the house, the agents and tools mounted in it, and its doors on one port. Composition, no logic. */
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { adapters } from '../adapters/index.ts';
import { createAuthenticator } from './auth/authenticate.ts';
import { createLogger } from './cli/logger.ts';
import { type House, openHouse } from './compose.ts';
import type { Config } from './config.ts';
import { createIds, later, systemClock } from './core/clock.ts';
import type { Recovered } from './core/recovery.ts';
import { createRedactor } from './core/redact.ts';
import { createDemoAgent } from './demo/agent.ts';
import { createHandOver } from './demo/hand-over.ts';
import { createDemoTools } from './demo/tools.ts';
import type { Actor } from './model/actions.ts';
import { Fault } from './model/faults.ts';
import type { Closable, Deps, Logger } from './ports.ts';
import { createCheckpoints } from './receipt/checkpoints.ts';
import { createHttpHost } from './wire/http.ts';

export interface GatewayOptions {
  /** A file that gets one line for each effect a demo tool really had. */
  readonly journal?: string;
}

export interface Gateway extends Closable {
  readonly house: House;
  readonly url: string;
  /** For whoever may read this process's output: everything, until the process ends. */
  readonly token: string;
  readonly recovered: Recovered;
  /** Questions that were open when it started. */
  readonly waiting: number;
}

/** The house itself, when it sets something up or looks after it. */
const KEEPER: Actor = { id: 'system:gateway', kind: 'system', scopes: ['*'] };
const UPKEEP_MS = 10_000;

export async function startGateway(config: Config, { journal }: GatewayOptions = {}): Promise<Gateway> {
  const redactor = createRedactor();
  const logger = createLogger(redactor);
  const token = randomBytes(24).toString('base64url');
  redactor.learn(token);
  const ids = createIds();
  const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal });
  const handOver = createHandOver(() => house.bridge);
  const house: House = await openHouse({
    dataDir: config.dataDir,
    policy: config.policy,
    logger,
    redactor,
    ids,
    backends: [createDemoAgent({ pause, handOver }), createDemoAgent({ pause, name: 'second' })],
    tools: [createDemoTools(journal ? { journal: (line) => appendFileSync(journal, `${line}\n`) } : {})],
    settings: {
      defaultAgent: config.defaultAgent,
      ...(config.autonomy && { defaultTier: config.autonomy }),
      ...(config.askExpiresMs && { askExpiresMs: config.askExpiresMs }),
    },
  });
  const http = createHttpHost({
    host: config.host,
    port: config.port,
    authenticated: true,
    requestId: () => ids.next('req'),
    log: logger,
  });
  const opened: Closable[] = [http];
  try {
    const recovered = await house.start();
    await haveWorkspace(house);
    const waiting = (await house.bridge.list(KEEPER, { object: 'ask', where: { state: 'open' }, limit: 200 })).data
      .length;
    const deps: Deps = {
      log: logger,
      clock: systemClock,
      ids,
      http,
      authenticate: await createAuthenticator({ localToken: token, dataDir: config.dataDir, clock: systemClock }),
      jwks: () => house.keyring.jwks(),
      sign: (text) => house.keyring.signer().sign(text),
      trouble: () => house.store.trouble(),
      secret: async (name) => {
        throw new Fault('not_found', `no secret ${name}: no vault is configured`);
      },
    };
    for (const adapter of adapters) {
      const door = adapter.door?.({} as never, deps);
      if (door) opened.unshift(await door.open(house.bridge));
    }
    opened.unshift(upkeep(house, config, logger));
    const { url } = await http.listen();
    return { house, url, token, recovered, waiting, close: () => closeAll([...opened, house], logger) };
  } catch (cause) {
    await closeAll([...opened, house], logger);
    throw cause;
  }
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

/** Signs the receipts' tree as it grows, and lets go of events that are past their time. */
function upkeep({ store, keyring }: House, { keepEventsMs }: Config, logger: Logger): Closable {
  const checkpoints = createCheckpoints({ store, signer: keyring.signer(), clock: systemClock });
  const round = async () => {
    try {
      await checkpoints.take();
      if (keepEventsMs) await store.retain(later(systemClock.now(), -keepEventsMs));
    } catch (cause) {
      logger.error({ err: cause }, 'upkeep failed; it is tried again');
    }
  };
  const timer = setInterval(round, UPKEEP_MS).unref();
  return {
    async close() {
      clearInterval(timer);
      await round();
    },
  };
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
