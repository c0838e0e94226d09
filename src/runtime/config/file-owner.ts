/** Refuses a configuration file that another user of the machine owns or can write. */
import { stat } from 'node:fs/promises';
import { Fault } from '../../model/faults.ts';

const WRITABLE_BY_ALL = 0o002;

export async function requireOwn(file: string): Promise<void> {
  const self = process.getuid?.();
  if (self === undefined) return; // a system without owners and modes
  const { uid, mode } = await stat(file);
  // A file of root can only be changed by root. Running as root, the owner does not matter: a mounted volume keeps its
  // owner.
  const foreign = self !== 0 && uid !== self && uid !== 0;
  if (!foreign && (mode & WRITABLE_BY_ALL) === 0) return;
  throw new Fault('permission_denied', `${file} ${foreign ? 'belongs to another user' : 'can be written by anyone'}`, {
    details: { fix: foreign ? 'make it your own, or name another with --config' : `chmod o-w ${file}` },
  });
}
