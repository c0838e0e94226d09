/**
 * Push configurations, stored as connectors so that they outlive the process. Address and credentials are encrypted before they
 * are written: the log, its readers and its copies hold nothing usable by an outsider.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { TaskPushNotificationConfig } from '@a2a-js/sdk';
import {
  type Actor,
  type Bridge,
  type Connector,
  type Deps,
  everyRow,
  Fault,
  type Json,
  type JsonObject,
  type Task as OurTask,
  type Row,
} from '../../../src/index.ts';
import { Refusal } from '../server/refusal.ts';

/** The system actor, for operations that need no right of the caller. The caller's own rights were checked before. */
export const SYSTEM_ACTOR: Actor = { id: 'system:a2a', kind: 'system', scopes: ['*'] };
const PROVIDER = 'a2a.push';

export interface PushConfig {
  /** The id of the connector that stores it. */
  readonly rowId: string;
  readonly id: string;
  readonly taskId: string;
  readonly agent: string;
  readonly version: string;
  /** The last event that was delivered; absent: none yet. */
  readonly cursor: string | undefined;
  /** Undefined when it was encrypted with a key that no longer exists. */
  readonly target: PushTarget | undefined;
  /** The gateway that delivers it; empty where none was recorded. */
  readonly gateway: string;
  /** The caller that is told, as far as it matters which of its questions it may answer. */
  readonly reader: Actor;
  /** Encrypted with a key that disappears with the signing key. */
  readonly perishable?: boolean;
}
export type PushTarget = {
  readonly url: string;
  readonly token: string;
  readonly authentication: { readonly scheme: string; readonly credentials: string } | undefined;
};

interface Kept {
  readonly config_id: string;
  readonly agent: string;
  readonly version: string;
  readonly sealed: string;
  readonly key_id: string;
  readonly cursor?: string;
  readonly gateway?: string;
  readonly reader?: Actor;
}

export interface PushConfigs {
  /** Creates a configuration and replaces the one with this id, if there is one. */
  save(
    task: OurTask,
    config: TaskPushNotificationConfig,
    more: { id: string; agent: string; version: string; gateway: string; reader: Actor; cursor?: string },
  ): Promise<PushConfig>;
  of(task: Pick<OurTask, 'id'>): Promise<readonly PushConfig[]>;
  /** Configurations with events left to deliver. */
  active(): Promise<readonly PushConfig[]>;
  /** Encrypts again those whose key may disappear. */
  renew(): Promise<void>;
  /** Makes another gateway responsible for delivery. */
  handOver(config: PushConfig, gateway: string): Promise<PushConfig>;
  /** Whether it still exists: it may have been removed or replaced, here or at another gateway. */
  stands(config: PushConfig): Promise<boolean>;
  /** Records the cursor and whether more will be delivered. Does nothing for a configuration that no longer exists. */
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
      reader: kept.reader ?? NO_ANSWERS,
      target: opened as PushTarget | undefined,
      perishable: kept.key_id !== box.keyId,
    };
  }

  async function all(where?: { task_id?: string; state?: string }): Promise<PushConfig[]> {
    const found: PushConfig[] = [];
    const query = { object: 'connector', ...(where && { where }) };
    const all = everyRow((paging) => bridge.list<Connector & Row>(SYSTEM_ACTOR, { ...query, ...paging }));
    for await (const row of all) {
      const config = read(row);
      if (config) found.push(config);
    }
    return found;
  }

  async function write(config: PushConfig, cursor: string | undefined, change: { status?: string }): Promise<void> {
    // A configuration that cannot be decrypted cannot be encrypted again; it stays as it is.
    const metadata = config.target && metadataOf({ ...config, cursor }, config.target);
    const body = { object: 'connector' as const, id: config.rowId, body: change, ...(metadata && { metadata }) };
    await bridge.submit({ kind: 'resource.update', actor: SYSTEM_ACTOR, body });
  }

  function metadataOf(
    { id, agent, version, cursor, gateway, reader }: Omit<PushConfig, 'rowId' | 'taskId'>,
    target: PushTarget,
  ): JsonObject {
    const sealed = box.seal(target as Json);
    const kept = {
      config_id: id,
      agent,
      version,
      gateway,
      // Plain data of ours.
      reader: reader as unknown as Json,
      ...sealed,
      ...(cursor && { cursor }),
    };
    return { a2a_push: kept };
  }

  async function remove({ rowId }: PushConfig): Promise<void> {
    const body = { object: 'connector' as const, id: rowId };
    await bridge.submit({ kind: 'resource.delete', actor: SYSTEM_ACTOR, body }).catch(unlessAbsent);
  }

  async function stands({ rowId }: PushConfig): Promise<boolean> {
    return (await bridge.view(SYSTEM_ACTOR, 'connector', rowId).catch(unlessAbsent)) !== undefined;
  }

  return {
    async save(task, { url, token, authentication }, { reader: { id: readerId, kind, scopes }, ...more }) {
      const target: PushTarget = {
        url,
        token,
        authentication: authentication && { scheme: authentication.scheme, credentials: authentication.credentials },
      };
      const { id, cursor } = more;
      const reader = { id: readerId, kind, scopes: scopes.filter((scope) => /^(approvals:|\*$)/.test(scope)) };
      const fields = { ...more, cursor, reader, target };
      const metadata = metadataOf(fields, target);
      const body = {
        provider: PROVIDER,
        workspace_id: task.workspace_id,
        status: 'ACTIVE',
        event_kinds: ['task'],
        task_id: task.id,
      };
      // Not overwritten: the gateway that delivers the previous one records its cursor there, which must not undo this.
      const known = (await all({ task_id: task.id })).find((config) => config.id === id);
      if (known) await remove(known);
      const { resource } = await bridge.submit({
        kind: 'resource.create',
        actor: SYSTEM_ACTOR,
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

/** For configurations made before readers were recorded. */
const NO_ANSWERS: Actor = { id: 'nobody', kind: 'service', scopes: [] };

/** Another gateway may have removed it in between. */
function unlessAbsent(cause: unknown): undefined {
  if (cause instanceof Fault && cause.kind === 'not_found') return undefined;
  throw cause;
}

export function absentConfig(id: string): Refusal {
  return new Refusal('TASK_NOT_FOUND', `no push notification config ${id}`);
}

const PURPOSE = 'tollbridge a2a push configuration v1';
const INSTALLATION = 'house';

/**
 * Encrypts with a key that only this installation can derive. It survives rotations of the signing key; older configurations,
 * encrypted with a key made from our signature, can be read as long as that signature can be made.
 */
function createBox({ sign, mac }: Pick<Deps, 'sign' | 'mac'>) {
  const keys = new Map<string, Buffer>();
  const made = sign?.(PURPOSE);
  if (made) keys.set(made.key_id, digest(made.signature));
  if (mac) keys.set(INSTALLATION, digest(mac(PURPOSE)));
  const keyId = mac ? INSTALLATION : (made?.key_id ?? 'process');
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
