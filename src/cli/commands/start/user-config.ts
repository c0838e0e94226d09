/**
 * The user's own configuration, created by the first `tollbridge init`. All of it is commented out, so that everything
 * behaves as without a file, and it shows where each setting goes.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { userPaths } from '../../../runtime/config/user-paths.ts';
import type { CommonOptions } from '../../context.ts';
import { tilde } from '../../editors/settings-file.ts';

const FIRST = `# Your own configuration of tollbridge. It holds wherever a command is started; a tollbridge.yaml in a working
# directory can only add rules that block, ask or defer, once you have seen it with: tollbridge trust
#
# Every section may be left out. Take away the # of what you want, then run: tollbridge policy check

# What agents may do. The strictest rule that matches decides. Where none does, reading is allowed and the rest asks.
# These two hold as long as there are no rules here.
# rules:
#   - { id: reads-are-fine, when: { effect: read }, then: allow }
#   - { id: outside-needs-a-human, when: { effect: [send, publish, pay] }, then: ask }

# Agents and tool servers, by name, with the command that starts each. They get a minimal environment, and
# what is configured for them.
# agents:
#   coder: { acp: { command: [npx, "@agentclientprotocol/claude-agent-acp"] } }
# tools:
#   files: { mcp: { command: [npx, -y, "@modelcontextprotocol/server-filesystem", "/home/me/notes"] } }

# Where "tollbridge serve" listens.
# listen: { host: 127.0.0.1, port: 4319 }
`;

export interface OwnConfig {
  readonly file: string;
  readonly created: boolean;
}

/** Creates the file when it is missing; an existing one is left alone. */
export async function haveOwnConfig(): Promise<OwnConfig> {
  const { file } = userPaths();
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    await writeFile(file, FIRST, { flag: 'wx', mode: 0o600 });
    return { file, created: true };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return { file, created: false };
    throw cause;
  }
}

/** Wrapped commands are governed by the user's own file, unless another was named. */
export async function ownConfigFor(
  { config, undo }: CommonOptions & { readonly undo?: boolean },
  written: boolean,
): Promise<OwnConfig | undefined> {
  return written && !undo && !config ? await haveOwnConfig() : undefined;
}

export function aboutConfig(own: OwnConfig | undefined): string {
  return own?.created ? `Your own configuration was made: ${tilde(own.file)}\n\n` : '';
}

/**
 * The options that name the configuration and the data directory, for an editor that starts us in another directory.
 */
export function optionsKept({ config, data }: CommonOptions): readonly string[] {
  return [...(config ? ['--config', resolve(config)] : []), ...(data ? ['--data', resolve(data)] : [])];
}
