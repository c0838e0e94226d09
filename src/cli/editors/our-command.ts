/** The command that starts tollbridge, for editors' settings and for suggested commands. */
import { access, constants } from 'node:fs/promises';
import { basename, delimiter, join } from 'node:path';
import { ownName } from '../own-name.ts';

/** The command for an editor: `tollbridge` when it is on the path, otherwise exactly as this process was started. */
export async function ourCommand(): Promise<readonly string[]> {
  for (const dir of (process.env.PATH ?? '').split(delimiter)) {
    const there =
      dir &&
      (await access(join(dir, 'tollbridge'), constants.X_OK).then(
        () => true,
        () => false,
      ));
    // Directories that npx adds to the path are gone when npx ends.
    if (there && !dir.includes('_npx')) return ['tollbridge'];
  }
  const [node = 'node', script = ''] = process.argv;
  return script.includes('_npx') ? ['npx', '-y', 'tollbridge'] : [node, script];
}

/** Default name of a new entry: the program, and not its launcher. */
export function nameOf(command: readonly string[]): string {
  const words = command.filter((word) => !word.startsWith('-') && !/^(npx|node|bunx|uvx|pnpm|dlx)$/.test(word));
  return basename(words[0] ?? command[0] ?? 'agent').replace(/@[\d.^~]+$/, '');
}

/** A command as it can be typed. */
export function typed(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' ');
}

export const us = () => ownName({ argv: process.argv, env: process.env, cwd: process.cwd() });
