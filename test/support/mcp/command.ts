/** `tollbridge mcp -- <server>` as a client starts it, in a gateway of its own. */
import { join } from 'node:path';
import { PROJECT } from '../process/project.ts';
import { aGateway, type Spoken, startSpeaking } from '../process/stdio-process.ts';

/** A server that shows everything the protocol has. */
export const EVERYTHING: readonly string[] = [
  process.execPath,
  join(PROJECT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'),
  'stdio',
];

export interface GuardedOptions {
  readonly rules: string;
  /** The command of the server. */
  readonly server: readonly string[];
  readonly args?: readonly string[];
  /** More of the configuration. */
  readonly more?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export async function guardedServer({
  rules,
  server,
  args = [],
  more = '',
  env = {},
}: GuardedOptions): Promise<Spoken> {
  const { data, config } = await aGateway(`rules:\n  ${rules}\n${more}`);
  return startSpeaking(['--data', data, '--config', config, 'mcp', ...args, '--', ...server], { env });
}
