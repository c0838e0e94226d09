/** How this program was called, so that the commands it suggests can be typed unchanged. */
import { basename, relative } from 'node:path';

export function ownName({ argv, env, cwd }: { argv: readonly string[]; env: NodeJS.ProcessEnv; cwd: string }): string {
  if (env.npm_command === 'exec') return 'npx tollbridge';
  const script = argv[1] ?? '';
  if (!/\.[cm]?[jt]s$/.test(script)) return basename(script) || 'tollbridge';
  return `node ${quoted(relative(cwd, script) || script)}`;
}

/** Quoted for a shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The beginning of a suggested command: this program, with the options for the same log. */
export function calledAgain({ data, config }: { readonly data?: string; readonly config?: string }): string {
  const name = ownName({ argv: process.argv, env: process.env, cwd: process.cwd() });
  return [name, ...(config ? ['--config', quoted(config)] : []), ...(data ? ['--data', quoted(data)] : [])].join(' ');
}
