/** A readable name for a command: the program, or the program that a launcher such as npx starts. */
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

/** `otherwise` when no part of the command makes a name. */
export function commandName(command: readonly string[], otherwise: string): string {
  const plain = (text: string) =>
    basename(text)
      .replace(/\.(js|mjs|cjs|ts|exe|cmd|py)$/i, '')
      .replace(/@.*$/, '');
  const [program = otherwise, ...args] = command;
  const started = STARTERS.has(plain(program)) ? args.find((arg) => !arg.startsWith('-')) : undefined;
  return plain(started ?? program).replace(/[^A-Za-z0-9_.-]+/g, '-') || otherwise;
}
