/**
 * The rules in force, copied beside the log under the version the log names. A command that opens the log without rules
 * of its own is decided by this copy. Holds the sources word for word; a copy whose content does not have the version
 * in its name is rejected.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../core/events/log.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';

import { type Sources, versionOf } from '../../policy/rules/load.ts';
import { problemsFault } from '../../policy/rules/problems.ts';
import type { PolicyChange, ReloadablePolicy } from '../../policy/rules/reload.ts';
import type { Store } from '../../ports/index.ts';

/** Every change of the rules is an event of this resource. */
export const RULES = { object: 'policy', id: 'rules' } as const;

/** Written before the log names this version. */
async function keepRules(dataDir: string, { rules, rulesName, files }: Sources): Promise<void> {
  const kept: Sources = { ...(rules !== undefined && { rules }), ...(rulesName && { rulesName }), files };
  const path = pathOf(dataDir, versionOf(kept));
  const text = JSON.stringify(kept);
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return;
  await mkdir(join(dataDir, 'rules'), { recursive: true, mode: 0o700 });
  const beside = `${path}.${process.pid}.tmp`;
  await writeFile(beside, text, { mode: 0o600 });
  await rename(beside, path);
}

/** The rules the log named last. Without a sound copy of them it is unknown what they allow, so this throws. */
export async function rulesOnRecord(dataDir: string, store: Pick<Store, 'tip' | 'event'>): Promise<Sources> {
  const version = (await lastChange(store))?.version;
  const kept = version && (await read(pathOf(dataDir, version)));
  if (kept && versionOf(kept) === version) return kept;
  throw new Fault('conflict', `the rules in force in ${dataDir} are not kept there`, {
    details: { fix: 'start it once where its configuration is, or answer at one of its doors' },
  });
}

/**
 * A runtime whose first rules cannot be read would refuse everything and say why only in its log; so it does not open.
 */
export async function requireRules(policy: ReloadablePolicy): Promise<void> {
  const { outcome, errors } = await policy.reload();
  if (outcome === 'refused') throw problemsFault(errors);
}

async function lastChange(store: Pick<Store, 'tip' | 'event'>): Promise<PolicyChange | undefined> {
  const tip = await store.tip({ of: 'resource', ...RULES });
  return (tip && (await store.event(tip))?.payload) as PolicyChange | undefined;
}

/**
 * Records every change as an event: the rules now in force, or those refused and why. Opening the runtime again is no
 * change.
 */
export async function noteChange(
  dataDir: string,
  store: Store,
  log: Pick<Log, 'commit'>,
  change: PolicyChange,
  read: Sources,
): Promise<void> {
  if (change.outcome === 'loaded') await keepRules(dataDir, read);
  const last = await lastChange(store);
  if (change.outcome === 'loaded' && last?.outcome === 'loaded' && last.version === change.version) return;
  const event: EventDraft = {
    event: 'vendor.tollbridge.policy_loaded',
    resource: RULES,
    payload: change,
  };
  await log.commit({ decide: () => ({ events: [event] }) });
}

async function read(path: string): Promise<Sources | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Sources;
  } catch {
    return undefined; // missing or torn: reported as not kept
  }
}

function pathOf(dataDir: string, version: string): string {
  return join(dataDir, 'rules', `${version.replace(/^sha256:/, '')}.json`);
}
