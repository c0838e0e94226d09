/** How many TypeScript files a folder may hold: more than a screenful, and a newcomer no longer finds the right one. */
import { readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const MOST_FILES = 16;
const TOPS = ['src', 'adapters', 'mappings', 'test', 'bench'];

/** Folders that still hold more, with the most they may hold until they are divided. */
export const LARGER: Readonly<Record<string, number>> = {};

export interface LargeFolder {
  readonly folder: string;
  readonly files: number;
  readonly most: number;
}

export function largeFolders(root: string, larger = LARGER): readonly LargeFolder[] {
  const found: LargeFolder[] = [];
  const walk = (folder: string) => {
    const entries = readdirSync(join(root, folder), { withFileTypes: true });
    for (const entry of entries)
      if (entry.isDirectory() && entry.name !== 'node_modules') walk(posix.join(folder, entry.name));
    const files = entries.filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name)).length;
    const most = larger[folder] ?? MOST_FILES;
    if (files > most) found.push({ folder, files, most });
  };
  const there = new Set(readdirSync(root));
  for (const top of TOPS) if (there.has(top)) walk(top);
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = largeFolders(fileURLToPath(new URL('../..', import.meta.url)));
  for (const { folder, files, most } of found)
    console.error(`${folder} holds ${files} files, at most ${most} are allowed: divide it by idea into folders`);
  console.error(found.length === 0 ? 'folders: none holds too many files' : `folders: ${found.length} too large`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
