/** Another program's settings file: read unchanged, replaced in one step, shown with `~`. */
import { mkdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { Fault } from '../../model/faults.ts';

/** Empty for a missing file. */
export function readSettings(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return '';
    throw new Fault('permission_denied', `${tilde(file)} cannot be read (${cause.code})`);
  });
}

/** Written beside it and renamed: an editor that reads meanwhile sees the old settings or the new ones. */
export async function putSettings(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  // Settings are often a symbolic link into another directory; the link stays.
  const target = await realpath(file).catch(() => file);
  const mode = await stat(target).then(
    ({ mode }) => mode,
    () => 0o600,
  );
  const beside = `${target}.${process.pid}.tmp`;
  await writeFile(beside, text.endsWith('\n') ? text : `${text}\n`, { mode });
  await rename(beside, target);
}

export function tilde(path: string): string {
  return path.startsWith(homedir()) ? `~${path.slice(homedir().length)}` : path;
}
