/**
 * The folder of other people's programs that this adapter is held against. Installed when first needed, exactly as its lock
 * file says, and never as dependencies of ours: one of them is a Node of its own.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT } from '../../support/process/project.ts';

const FOLDER = join(PROJECT, 'tools', 'mcp');
const LOCK = join(FOLDER, 'package-lock.json');
/** The lock file that was installed from. */
const INSTALLED = join(FOLDER, 'node_modules', '.installed-from.json');

/** The command line of one of the programs, run by the Node that came with them. */
export async function tool(name: string, tell: (line: string) => void): Promise<readonly string[]> {
  const same = existsSync(INSTALLED) && readFileSync(INSTALLED).equals(readFileSync(LOCK));
  if (!same) {
    tell('installing the tools in tools/mcp, once ...');
    await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: FOLDER });
    await copyFile(LOCK, INSTALLED);
  }
  const bin = join(FOLDER, 'node_modules', '.bin');
  return [join(bin, 'node'), join(bin, name)];
}
