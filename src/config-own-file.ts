/** Whether a file is this user's own. One that another user of the machine can write, or owns, is not read as if it were. */
import { stat } from 'node:fs/promises';
import { Fault } from './model/faults.ts';

const WRITABLE_BY_ALL = 0o002;

export async function requireOwn(file: string): Promise<void> {
  const self = process.getuid?.();
  if (self === undefined) return; // a system without owners and modes
  const { uid, mode } = await stat(file);
  // What root owns only root can change. As root, whose file it is does not matter: a mounted volume keeps its owner.
  const foreign = self !== 0 && uid !== self && uid !== 0;
  if (!foreign && (mode & WRITABLE_BY_ALL) === 0) return;
  throw new Fault('permission_denied', `${file} ${foreign ? 'belongs to another user' : 'can be written by anyone'}`, {
    details: { fix: foreign ? 'make it your own, or name another with --config' : `chmod o-w ${file}` },
  });
}
