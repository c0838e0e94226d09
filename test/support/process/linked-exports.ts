/** What two gateways wrote for others to check, and the scripts that check it without anything of ours. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { NAMES, writeEvents, writeReceipts } from '../../../src/cli/commands/proof/archive.ts';
import type { CoreRuntime } from '../../../src/runtime/assemble.ts';
import { PROJECT } from './project.ts';
import { hasPython, PYTHON } from './python.ts';

const VERIFY = join(PROJECT, 'examples/verify');
const { check, main } = await import(join(VERIFY, 'verify-more.js'));

export async function exported({ store, keyring }: Pick<CoreRuntime, 'store' | 'keyring'>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-linked-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const source = { store, keys: keyring.jwks(), signer: keyring.signer(), now: new Date().toISOString() };
  await writeReceipts(dir, source);
  await writeEvents(dir, source, { of: 'all' });
  return dir;
}

async function filesIn(dir: string): Promise<Record<string, string>> {
  const names = [NAMES.receipts, NAMES.events, NAMES.keys, NAMES.head, NAMES.logHead];
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(dir, name), 'utf8')])),
  );
}

/** How many links the script in JavaScript finds. */
export async function linksByScript(ours: string, theirs: string): Promise<number> {
  return main(await check(await filesIn(ours)), await check(await filesIn(theirs))) as number;
}

/** What the script in Python says; undefined where there is none. */
export function saidByPython(ours: string, theirs: string): string | undefined {
  if (!hasPython) return undefined;
  return spawnSync(PYTHON, [join(VERIFY, 'verify_more.py'), ours, theirs], { encoding: 'utf8' }).stdout;
}
