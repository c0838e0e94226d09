/** The harnesses that are compared: ours in a gateway of its own, and one that answers a constant, at once or once it is on disk. */
import { type FileHandle, open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { settingsOf } from '../../adapters/ahp/config.ts';
import { createHarness, type Harness } from '../../adapters/ahp/server/harness.ts';
import { createIds, systemClock } from '../../src/core/clock.ts';
import type { Actor } from '../../src/model/actions.ts';
import { openCoreRuntime } from '../../src/runtime/assemble.ts';

export const SIDES = ['ours', 'theirs', 'synced'] as const;
export type Side = (typeof SIDES)[number];

export const QUIET = { info() {}, warn() {}, error() {} };
const OWNER: Actor = { id: 'owner', kind: 'person', scopes: ['*'] };
const RULES = '- { id: tools, when: { kind: tool }, then: allow }';
const HELLO = { protocol_version: '2.4', harness_info: { name: 'null', version: '0', capabilities: [] } };

export async function openSide(side: Side, dir: string): Promise<Harness> {
  if (side === 'ours') return await ours(dir);
  return constant(side === 'synced' ? await openFile(join(dir, 'synced.log'), 'a') : undefined);
}

/** As a gateway opens it, with one rule. */
async function ours(dir: string): Promise<Harness> {
  const ids = createIds();
  const policy = { load: async () => ({ rules: RULES, files: [] }) };
  const runtime = await openCoreRuntime({ dataDir: dir, serving: true, ids, policy });
  const body = { object: 'workspace' as const, body: { name: 'w', root: 'file:///w' } };
  await runtime.bridge.submit({ kind: 'resource.create', actor: OWNER, body });
  const harness = createHarness(runtime.bridge, settingsOf({}), { log: QUIET, ids, clock: systemClock });
  return {
    ...harness,
    async close() {
      await harness.close();
      await runtime.close();
    },
  };
}

/** Answers without looking; with a file, after what it was asked is safe on disk. */
const constant = (file?: FileHandle): Harness => ({
  async receive(message) {
    const { id, method } = message as { id: string; method: string };
    await file?.write(`${JSON.stringify(message)}\n`);
    await file?.datasync();
    const result = method === 'ahp/handshake' ? HELLO : { decision: 'allow' };
    return id === undefined ? { kind: 'taken' } : { kind: 'reply', response: { jsonrpc: '2.0', id, result } };
  },
  async left() {},
  async close() {
    await file?.close();
  },
});
