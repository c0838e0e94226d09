/** What a person would call a command: the program, or what a program that starts others was told to start. */
import { basename } from 'node:path';

const STARTERS = new Set([
  'node',
  'npx',
  'bunx',
  'bun',
  'uvx',
  'uv',
  'python',
  'python3',
  'deno',
  'pnpm',
  'tsx',
  'env',
]);

/** `otherwise` when nothing of the command can be spelled. */
export function commandName(command: readonly string[], otherwise: string): string {
  const plain = (text: string) =>
    basename(text)
      .replace(/\.(js|mjs|cjs|ts|exe|cmd|py)$/i, '')
      .replace(/@.*$/, '');
  const [program = otherwise, ...args] = command;
  const started = STARTERS.has(plain(program)) ? args.find((arg) => !arg.startsWith('-')) : undefined;
  return plain(started ?? program).replace(/[^A-Za-z0-9_.-]+/g, '-') || otherwise;
}
