/** The project's folder, for what is read from it and not compiled: the same from where it is written and from where it is compiled to. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const PROJECT = above(import.meta.dirname);

function above(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : above(dirname(folder));
}
