/** Resolves symbolic links. A file that does not exist yet is resolved through its nearest existing directory. */
import { realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { Fault } from '../../src/index.ts';

export async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new Fault('invalid_request', `${path} cannot be looked at`);
    }
    const parent = dirname(path);
    return parent === path ? path : join(await realPath(parent), relative(parent, path));
  }
}
