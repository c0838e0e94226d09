/**
 * The rules in force, copied beside the log under the version the log names. A command that opens the log without rules
 * of its own is decided by this copy. Holds the sources word for word; a copy whose content does not have the version
 * in its name is rejected.
 */
import { filesIn } from '../../auth/private-file.ts';
import type { Log } from '../../core/events/log.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';

import { type Sources, versionOf } from '../../policy/rules/load.ts';
import { problemsFault } from '../../policy/rules/problems.ts';
import type { PolicyChange, ReloadablePolicy } from '../../policy/rules/reload.ts';
import type { PrivateFiles, Store } from '../../ports/index.ts';

/** Every change of the rules is an event of this resource. */
export const RULES = { object: 'policy', id: 'rules' } as const;

/** Written before the log names this version. */
async function keepRules(files: PrivateFiles, { rules, rulesName, files: texts }: Sources): Promise<void> {
  const kept: Sources = { ...(rules !== undefined && { rules }), ...(rulesName && { rulesName }), files: texts };
  const text = JSON.stringify(kept);
  const file = fileOf(versionOf(kept));
  if ((await files.read(file)) !== text) await files.replace(file, () => text);
}

/** The rules the log named last. Without a sound copy of them it is unknown what they allow, so this throws. */
export async function rulesOnRecord(
  where: string | PrivateFiles,
  store: Pick<Store, 'tip' | 'event'>,
): Promise<Sources> {
  const files = filesIn(where);
  const version = (await lastChange(store))?.version;
  const kept = version && (await read(files, fileOf(version)));
  if (kept && versionOf(kept) === version) return kept;
  throw new Fault('conflict', `the rules in force are not kept in ${files.nameOf('rules')}`, {
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
  files: PrivateFiles,
  store: Store,
  log: Pick<Log, 'commit'>,
  change: PolicyChange,
  read: Sources,
): Promise<void> {
  if (change.outcome === 'loaded') await keepRules(files, read);
  const last = await lastChange(store);
  if (change.outcome === 'loaded' && last?.outcome === 'loaded' && last.version === change.version) return;
  const event: EventDraft = {
    event: 'vendor.tollbridge.policy_loaded',
    resource: RULES,
    payload: change,
  };
  await log.commit({ decide: () => ({ events: [event] }) });
}

async function read(files: PrivateFiles, file: string): Promise<Sources | undefined> {
  const text = await files.read(file);
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Sources);
  } catch {
    return undefined; // torn: reported as not kept
  }
}

const fileOf = (version: string): string => `rules/${version.replace(/^sha256:/, '')}.json`;
