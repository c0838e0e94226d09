/**
 * Where push notifications go, kept as connectors of the house so that they outlive the process. Address and credentials
 * are sealed before they are written: the log, its readers and its copies hold nothing a stranger could use.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { TaskPushNotificationConfig } from '@a2a-js/sdk';
import {
  type Actor,
  type Bridge,
  type Connector,
  type Deps,
  Fault,
  type Json,
  type JsonObject,
  type Task as OurTask,
  type Row,
} from '../../src/index.ts';
import { Refusal } from './refusal.ts';

/** The house itself, for what callers need no right of their own for. What they may have was asked before. */
export const KEEPER: Actor = { id: 'system:a2a', kind: 'system', scopes: ['*'] };
const PROVIDER = 'a2a.push';

export interface PushConfig {
  /** Of the connector it is kept as. */
  readonly rowId: string;
  readonly id: string;
  readonly taskId: string;
  readonly agent: string;
  readonly version: string;
  /** The last event that was delivered; absent: none yet. */
  readonly cursor: string | undefined;
  /** Undefined when it was sealed with a key that is gone. */
  readonly target: Target | undefined;
  /** The gateway that delivers it; empty where none was written down. */
  readonly gateway: string;
  /** Sealed with a key that goes when the signing key does. */
  readonly perishable?: boolean;
}
export interface Target {
  readonly url: string;
  readonly token: string;
  readonly authentication: { readonly scheme: string; readonly credentials: string } | undefined;
}

interface Kept {
  readonly config_id: string;
  readonly agent: string;
  readonly version: string;
  readonly sealed: string;
  readonly key_id: string;
  readonly cursor?: string;
  readonly gateway?: string;
}

export interface PushConfigs {
  /** A new one, in the place of the one with this id if there is one. */
  save(
    task: OurTask,
    config: TaskPushNotificationConfig,
    more: { id: string; agent: string; version: string; gateway: string; cursor?: string },
  ): Promise<PushConfig>;
  of(task: Pick<OurTask, 'id'>): Promise<readonly PushConfig[]>;
  /** Those with more to tell. */
  active(): Promise<readonly PushConfig[]>;
  /** Seals anew what was sealed with a key that may go. */
  renew(): Promise<void>;
  /** From now on another gateway delivers it. */
  handOver(config: PushConfig, gateway: string): Promise<PushConfig>;
  /** Whether it is still wanted: it may have been removed or replaced, here or at another gateway. */
  stands(config: PushConfig): Promise<boolean>;
  /** How far it came, and whether there is more to come. Nothing where it is no longer wanted. */
  note(config: PushConfig, cursor: string | undefined, status: 'ACTIVE' | 'DISABLED' | 'FAILED'): Promise<void>;
  remove(config: PushConfig): Promise<void>;
}

export function createPushConfigs(bridge: Bridge, keys: Pick<Deps, 'sign' | 'mac'>): PushConfigs {
  const box = createBox(keys);

  function read(row: Connector & Row): PushConfig | undefined {
    const kept = (row.metadata as { a2a_push?: Kept }).a2a_push;
    const { task_id: taskId } = row as Row & { task_id?: string };
    if (row.provider !== PROVIDER || !kept || !taskId) return undefined;
    const opened = box.open(kept.key_id, kept.sealed);
    return {
      rowId: row.id,
      id: kept.config_id,
      taskId,
      agent: kept.agent,
      version: kept.version,
      cursor: kept.cursor,
      gateway: kept.gateway ?? '',
      target: opened as Target | undefined,
      perishable: kept.key_id !== box.keyId,
    };
  }

  async function all(where?: { task_id?: string; state?: string }): Promise<PushConfig[]> {
    const found: PushConfig[] = [];
    for (let after: string | undefined; ; ) {
      const query = { object: 'connector', limit: 200, ...(where && { where }), ...(after && { after }) };
      const { data, next } = await bridge.list<Connector & Row>(KEEPER, query);
      for (const row of data) {
        const config = read(row);
        if (config) found.push(config);
      }
      if (!next) return found;
      after = next;
    }
  }

  async function write(config: PushConfig, cursor: string | undefined, change: { status?: string }): Promise<void> {
    // What cannot be opened cannot be sealed again either; it stays as it is.
    const metadata = config.target && metadataOf({ ...config, cursor }, config.target);
    const body = { object: 'connector' as const, id: config.rowId, body: change, ...(metadata && { metadata }) };
    await bridge.submit({ kind: 'resource.update', actor: KEEPER, body });
  }

  function metadataOf(
    { id, agent, version, cursor, gateway }: Omit<PushConfig, 'rowId' | 'taskId'>,
    target: Target,
  ): JsonObject {
    const sealed = box.seal(target as unknown as Json);
    const kept = { config_id: id, agent, version, gateway, ...sealed, ...(cursor && { cursor }) };
    return { a2a_push: kept };
  }

  async function remove({ rowId }: PushConfig): Promise<void> {
    const body = { object: 'connector' as const, id: rowId };
    await bridge.submit({ kind: 'resource.delete', actor: KEEPER, body }).catch(unlessAbsent);
  }

  async function stands({ rowId }: PushConfig): Promise<boolean> {
    return (await bridge.view(KEEPER, 'connector', rowId).catch(unlessAbsent)) !== undefined;
  }

  return {
    async save(task, { url, token, authentication }, { id, agent, version, gateway, cursor }) {
      const target: Target = {
        url,
        token,
        authentication: authentication && { scheme: authentication.scheme, credentials: authentication.credentials },
      };
      const fields = { id, agent, version, gateway, cursor, target };
      const metadata = metadataOf(fields, target);
      const body = {
        provider: PROVIDER,
        workspace_id: task.workspace_id,
        status: 'ACTIVE',
        event_kinds: ['task'],
        task_id: task.id,
      };
      // Not written over: whoever delivers the one before notes how far it came, and must not undo this.
      const known = (await all({ task_id: task.id })).find((config) => config.id === id);
      if (known) await remove(known);
      const { resource } = await bridge.submit({
        kind: 'resource.create',
        actor: KEEPER,
        body: { object: 'connector', body, metadata },
      });
      return { rowId: resource.id, taskId: task.id, ...fields };
    },
    of: ({ id }) => all({ task_id: id }),
    active: () => all({ state: 'ACTIVE' }),
    async renew() {
      for (const config of await all()) if (config.perishable) await write(config, config.cursor, {});
    },
    async handOver(config, gateway) {
      const taken = { ...config, gateway };
      await write(taken, taken.cursor, {});
      return taken;
    },
    stands,
    async note(config, cursor, status) {
      if (await stands(config)) await write(config, cursor, { status });
    },
    remove,
  };
}

/** Another gateway may have removed it in between. */
function unlessAbsent(cause: unknown): undefined {
  if (cause instanceof Fault && cause.kind === 'not_found') return undefined;
  throw cause;
}

export function absentConfig(id: string): Refusal {
  return new Refusal('TASK_NOT_FOUND', `no push notification config ${id}`);
}

const PURPOSE = 'tollbridge a2a push configuration v1';
const HOUSE = 'house';

/**
 * Seals with a key only this house can make. It outlives changes of the signing key; what was sealed with a signature of ours,
 * as older configurations were, still opens as long as that signature can be made.
 */
function createBox({ sign, mac }: Pick<Deps, 'sign' | 'mac'>) {
  const keys = new Map<string, Buffer>();
  const made = sign?.(PURPOSE);
  if (made) keys.set(made.key_id, digest(made.signature));
  if (mac) keys.set(HOUSE, digest(mac(PURPOSE)));
  const keyId = mac ? HOUSE : (made?.key_id ?? 'process');
  if (!keys.has(keyId)) keys.set(keyId, randomBytes(32));
  return {
    keyId,
    seal(value: Json): { sealed: string; key_id: string } {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', keys.get(keyId) as Buffer, nonce);
      const body = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
      return { sealed: Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('hex'), key_id: keyId };
    },
    open(sealedWith: string, sealed: string): Json | undefined {
      const key = keys.get(sealedWith);
      if (!key) return undefined;
      try {
        const bytes = Buffer.from(sealed, 'hex');
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
        decipher.setAuthTag(bytes.subarray(12, 28));
        return JSON.parse(
          Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8'),
        ) as Json;
      } catch {
        return undefined;
      }
    },
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
