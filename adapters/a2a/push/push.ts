/**
 * Push notifications: one ordered reader of the log for each address, at one gateway, at least once, with retries, resumed
 * after a restart, here or at another gateway, from the recorded cursor. Addresses that are not public are refused, both when
 * they are registered and when they are dialled, and redirects are not followed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamResponse, TaskPushNotificationConfig } from '@a2a-js/sdk';
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server';
import { V1PushNotificationSerializer } from '@a2a-js/sdk/server';
import { PROTOCOL } from '../../../mappings/a2a.ts';
import { type Actor, type Bridge, type Deps, isTerminal, type Task as OurTask, type Row } from '../../../src/index.ts';
import { outboundTrouble, postOut, type Resolve } from '../../../src/transport/outbound/public-fetch.ts';
import type { A2aSettings } from '../config.ts';
import { Refusal } from '../server/refusal.ts';
import type { TaskProjection } from '../server/render-events.ts';
import type { TaskReader } from '../server/task-reader.ts';
import { absentConfig, createPushConfigs, type PushConfig, type PushTarget, SYSTEM_ACTOR } from './configs.ts';
import { createDuty } from './delivery-lease.ts';

export interface Push {
  /** Refuses an address that could not be delivered to. Called before the work it is about begins. */
  check(config: TaskPushNotificationConfig): Promise<void>;
  /** `inline`: registered with the first message, so no event of the task was missed. */
  create(
    actor: Actor,
    task: OurTask,
    config: TaskPushNotificationConfig,
    version: string,
    inline?: boolean,
  ): Promise<TaskPushNotificationConfig>;
  get(task: OurTask, id: string): Promise<TaskPushNotificationConfig>;
  list(task: OurTask): Promise<TaskPushNotificationConfig[]>;
  remove(task: OurTask, id: string): Promise<void>;
  /** Resumes the deliveries of an earlier process, and of gateways that stop while this one runs. */
  resume(): Promise<void>;
  /** Resolves when no delivery is in progress. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

export interface PushDeps {
  readonly bridge: Bridge;
  readonly settings: A2aSettings;
  readonly deps: Pick<Deps, 'sign' | 'mac' | 'ids' | 'log' | 'lease'>;
  readerOf(agent: string): TaskReader;
  readonly resolve?: Resolve;
  /** How often to look for deliveries of a gateway that is gone. */
  readonly takeOverMs?: number;
}

/** The most addresses a task may have. */
const MOST = 20;

export function createPush({ bridge, settings, deps, readerOf, resolve, takeOverMs = 10_000 }: PushDeps): Push {
  const { log, ids } = deps;
  const configs = createPushConfigs(bridge, deps);
  const couriers = new Map<string, { stop: AbortController; done: Promise<void> }>();
  const rules = settings.push;
  const duty = createDuty({
    deps,
    everyMs: takeOverMs,
    names: async () => (await configs.active()).map(({ gateway }) => gateway),
    async takeOver(from) {
      // Read again: it may have changed while another gateway still held the name.
      for (const config of await configs.active()) {
        if (config.gateway === from) begin(await configs.handOver(config, duty.name));
      }
    },
  });

  function begin(config: PushConfig): void {
    if (couriers.has(config.rowId)) return;
    const stop = new AbortController();
    const done = carry(config, stop.signal)
      .catch((cause) => log.warn({ err: cause, task: config.taskId }, 'push notifications of a task were given up'))
      .finally(() => couriers.delete(config.rowId));
    couriers.set(config.rowId, { stop, done });
  }

  async function carry(config: PushConfig, signal: AbortSignal): Promise<void> {
    const { target } = config;
    const task = await bridge.view<OurTask & Row>(SYSTEM_ACTOR, 'task', config.taskId);
    const reader = readerOf(config.agent);
    if (!target) {
      log.warn({ task: config.taskId }, 'a push notification was sealed with a key that is gone');
      return await configs.note(config, config.cursor, 'FAILED');
    }
    const owned = { task, contextId: reader.contextOf(task) };
    const projection = config.cursor
      ? await reader.catchUp(SYSTEM_ACTOR, owned, { upTo: config.cursor, as: config.reader })
      : reader.begin(config.reader, owned.contextId);
    const line = lingering(signal);
    let saved = performance.now();
    let delivered = config.cursor;
    for await (const updates of reader.follow(SYSTEM_ACTOR, task.id, projection, signal)) {
      for (const update of updates) {
        if (await deliver(config, target, { payload: update }, projection, { signal, line })) continue;
        return await configs.note(config, delivered, signal.aborted ? 'ACTIVE' : 'FAILED');
      }
      delivered = projection.cursor;
      if (updates.length === 0 || projection.ended || performance.now() - saved < SAVE_MS) continue;
      saved = performance.now();
      await configs.note(config, delivered, 'ACTIVE');
    }
    if (projection.ended || delivered !== config.cursor) {
      await configs.note(config, delivered, projection.ended ? 'DISABLED' : 'ACTIVE');
    }
  }

  async function deliver(
    config: PushConfig,
    target: PushTarget,
    update: StreamResponse,
    projection: TaskProjection,
    { signal, line }: { signal: AbortSignal; line: AbortSignal },
  ) {
    const serializer = config.version === PROTOCOL ? V1 : V03;
    const { body, contentType } = serializer.serialize(update, projection.snapshot());
    const headers = { 'content-type': contentType, 'a2a-version': config.version, ...credentials(target) };
    for (const wait of [...rules.retryMs, undefined]) {
      if (signal.aborted || !(await configs.stands(config))) return false;
      try {
        const out = { headers, body, timeoutMs: rules.timeoutMs, signal: line, trace: projection.trace };
        const status = await postOut(target.url, rules, out, resolve);
        if (status >= 200 && status < 300) return true;
        // Redirects are not followed, and a permanent refusal is not retried.
        if (status < 500 && status !== 408 && status !== 429) return false;
      } catch (cause) {
        if (line.aborted) return false;
        log.warn({ err: cause, task: config.taskId }, 'a push notification could not be delivered');
      }
      if (wait === undefined) return false;
      await sleep(wait, undefined, { signal }).catch(() => {});
    }
    return false;
  }

  async function find(task: OurTask, id: string): Promise<PushConfig> {
    const found = (await configs.of(task)).find((config) => config.id === id);
    if (!found) throw absentConfig(id);
    return found;
  }

  async function stop(rowId: string): Promise<void> {
    const courier = couriers.get(rowId);
    courier?.stop.abort();
    await courier?.done;
  }

  async function check({ url, id, token, authentication }: TaskPushNotificationConfig): Promise<void> {
    if (!url) throw new Refusal('INVALID_PARAMS', 'url is required');
    if (id.length > 128) throw new Refusal('INVALID_PARAMS', 'id is too long');
    if (/[\r\n]/.test(`${token}${authentication?.scheme}${authentication?.credentials}`)) {
      throw new Refusal('INVALID_PARAMS', 'credentials must be one line');
    }
    const trouble = await outboundTrouble(url, rules, resolve);
    if (trouble) throw new Refusal('INVALID_PARAMS', `url: ${trouble}`);
  }

  return {
    check,
    async create(actor, task, config, version, inline = false) {
      // For new work the address was checked before the work began.
      if (!inline) await check(config);
      const before = await configs.of(task);
      if (before.length >= MOST) throw new Refusal('INVALID_PARAMS', `a task has at most ${MOST} of these`);
      const agent = task.assigned_agent_id ?? '';
      const reader = readerOf(agent);
      const seen = inline
        ? undefined
        : (await reader.catchUp(actor, { task, contextId: reader.contextOf(task) })).cursor;
      // 0.3 has one configuration per task: without an id it is that one.
      const id = config.id || (version === PROTOCOL ? ids.next('push') : 'default');
      const known = before.find((each) => each.id === id);
      if (known) await stop(known.rowId);
      const saved = await configs.save(task, config, {
        ...{ id, agent, version, gateway: duty.name, reader: actor },
        ...(seen && { cursor: seen }),
      });
      if (inline || !isTerminal(task.status)) begin(saved);
      return shown(saved);
    },
    async get(task, id) {
      return shown(await find(task, id));
    },
    async list(task) {
      return (await configs.of(task)).map(shown);
    },
    async remove(task, id) {
      // Removing an absent configuration succeeds.
      const config = (await configs.of(task)).find((each) => each.id === id);
      if (!config) return;
      await stop(config.rowId);
      await configs.remove(config);
    },
    async resume() {
      await configs.renew();
      await duty.begin();
    },
    async idle() {
      while (couriers.size > 0) await Promise.all([...couriers.values()].map(({ done }) => done));
    },
    async close() {
      await duty.end(async () => {
        for (const { stop } of couriers.values()) stop.abort();
        await Promise.allSettled([...couriers.values()].map(({ done }) => done));
      });
    },
  };
}

/** How long a call in progress may take to end on shutdown. */
const GRACE_MS = 500;

/** Fires a little later: the next deliverer would repeat a call that was cut off. */
function lingering(signal: AbortSignal): AbortSignal {
  const late = new AbortController();
  signal.addEventListener('abort', () => setTimeout(() => late.abort(), GRACE_MS).unref(), { once: true });
  return late.signal;
}

/** How often the cursor is saved while deliveries go on. */
const SAVE_MS = 1_000;
const V1 = new V1PushNotificationSerializer();
const V03 = new V03PushNotificationSerializer();

function credentials({ token, authentication }: PushTarget): Record<string, string> {
  return {
    ...(token && { 'x-a2a-notification-token': token }),
    ...(authentication?.scheme && {
      authorization: [authentication.scheme, authentication.credentials].filter(Boolean).join(' '),
    }),
  };
}

/** Credentials are used and never returned. */
function shown({ id, taskId, target }: PushConfig): TaskPushNotificationConfig {
  return {
    tenant: '',
    id,
    taskId,
    url: target?.url ?? '',
    token: target?.token ?? '',
    authentication: target?.authentication && { scheme: target.authentication.scheme, credentials: '' },
  };
}
