/**
 * Where push notifications go, kept as connectors of the house so that they outlive the process. Address and credentials
 * are sealed before they are written: the log, its readers and its copies hold nothing a stranger could use.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { TaskPushNotificationConfig } from '@a2a-js/sdk';
import type { Actor, Bridge, Connector, Deps, Json, JsonObject, Task as OurTask, Row } from '../../src/index.ts';
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
  readonly active: boolean;
  /** The last event that was delivered; absent: none yet. */
  readonly cursor: string | undefined;
  /** Undefined when it was sealed with a key that is gone. */
  readonly target: Target | undefined;
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
}

export interface PushConfigs {
  save(
    task: OurTask,
    config: TaskPushNotificationConfig,
    more: { id: string; agent: string; version: string; cursor?: string },
  ): Promise<PushConfig>;
  of(task: Pick<OurTask, 'id'>): Promise<readonly PushConfig[]>;
  /** Those with more to tell. What was sealed with a key that may go is sealed anew. */
  active(): Promise<readonly PushConfig[]>;
  /** How far it came, and whether there is more to come. */
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
      active: row.status === 'ACTIVE',
      cursor: kept.cursor,
      target: opened as Target | undefined,
      perishable: kept.key_id !== box.keyId,
    };
  }

  async function all(where: { task_id: string } | undefined): Promise<PushConfig[]> {
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
    if (!config.target) return;
    const metadata = metadataOf({ ...config, cursor }, config.target);
    const body = { object: 'connector' as const, id: config.rowId, body: change, metadata };
    await bridge.submit({ kind: 'resource.update', actor: KEEPER, body });
  }

  function metadataOf(
    { id, agent, version, cursor }: Omit<PushConfig, 'rowId' | 'active' | 'taskId'>,
    target: Target,
  ): JsonObject {
    const sealed = box.seal(target as unknown as Json);
    const kept = { config_id: id, agent, version, ...sealed, ...(cursor && { cursor }) };
    return { a2a_push: kept };
  }

  return {
    async save(task, { url, token, authentication }, { id, agent, version, cursor }) {
      const target: Target = {
        url,
        token,
        authentication: authentication && { scheme: authentication.scheme, credentials: authentication.credentials },
      };
      const fields = { id, agent, version, cursor, target };
      const metadata = metadataOf(fields, target);
      const body = {
        provider: PROVIDER,
        workspace_id: task.workspace_id,
        status: 'ACTIVE',
        event_kinds: ['task'],
        task_id: task.id,
      };
      const known = (await all({ task_id: task.id })).find((config) => config.id === id);
      const { resource } = known
        ? await bridge.submit({
            kind: 'resource.update',
            actor: KEEPER,
            body: { object: 'connector', id: known.rowId, body: { status: 'ACTIVE' }, metadata },
          })
        : await bridge.submit({
            kind: 'resource.create',
            actor: KEEPER,
            body: { object: 'connector', body, metadata },
          });
      return { rowId: resource.id, taskId: task.id, active: true, ...fields };
    },
    of: ({ id }) => all({ task_id: id }),
    async active() {
      const known = await all(undefined);
      for (const config of known) if (config.perishable) await write(config, config.cursor, {});
      return known.filter(({ active }) => active);
    },
    note: (config, cursor, status) => write(config, cursor, { status }),
    async remove({ rowId }) {
      await bridge.submit({ kind: 'resource.delete', actor: KEEPER, body: { object: 'connector', id: rowId } });
    },
  };
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
