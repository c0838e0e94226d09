/**
 * The rules in force in a house, kept beside its log under the version the log names. Whoever visits the house is judged by these and
 * brings none of their own. Holds what was read, word for word; a copy whose version is not the one it is called by is no copy.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from './model/faults.ts';
import { type Sources, versionOf } from './policy/load.ts';
import { problemsFault } from './policy/problems.ts';
import type { PolicyChange, ReloadablePolicy } from './policy/reload.ts';
import type { Store } from './ports.ts';

/** Every change of the rules is an event of this resource. */
export const RULES = { object: 'policy', id: 'rules' } as const;

/** Kept before the log speaks of them. */
export async function keepRules(dataDir: string, { rules, rulesName, files }: Sources): Promise<void> {
  const kept: Sources = { ...(rules !== undefined && { rules }), ...(rulesName && { rulesName }), files };
  const path = placeOf(dataDir, versionOf(kept));
  const text = JSON.stringify(kept);
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return;
  await mkdir(join(dataDir, 'rules'), { recursive: true, mode: 0o700 });
  const beside = `${path}.${process.pid}.tmp`;
  await writeFile(beside, text, { mode: 0o600 });
  await rename(beside, path);
}

/** The rules the log named last. Without a sound copy of them nobody can say what they allow. */
export async function rulesOnRecord(dataDir: string, store: Pick<Store, 'tip' | 'event'>): Promise<Sources> {
  const version = (await lastChange(store))?.version;
  const kept = version && (await read(placeOf(dataDir, version)));
  if (kept && versionOf(kept) === version) return kept;
  throw new Fault('conflict', `the rules in force in ${dataDir} are not kept there`, {
    details: { fix: 'start it once where its configuration is, or answer at one of its doors' },
  });
}

/** A house whose first rules cannot be read would refuse everything and say why only in its log; so it does not open. */
export async function requireRules(policy: ReloadablePolicy): Promise<void> {
  const { outcome, errors } = await policy.reload();
  if (outcome === 'refused') throw problemsFault(errors);
}

export async function lastChange(store: Pick<Store, 'tip' | 'event'>): Promise<PolicyChange | undefined> {
  const tip = await store.tip({ of: 'resource', ...RULES });
  return (tip && (await store.event(tip))?.payload) as PolicyChange | undefined;
}

async function read(path: string): Promise<Sources | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Sources;
  } catch {
    return undefined; // gone or torn: told as not kept
  }
}

function placeOf(dataDir: string, version: string): string {
  return join(dataDir, 'rules', `${version.replace(/^sha256:/, '')}.json`);
}
