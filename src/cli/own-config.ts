/**
 * The person's own configuration, made by the first `tollbridge init`. It says nothing yet, so that everything stays as
 * it is without a file, and shows where each thing would be said.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { userPlaces } from '../config-places.ts';
import type { CommonOptions } from './context.ts';
import { tilde } from './settings-file.ts';

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

/** Makes it when it is not there; one that is there is left alone. */
export async function haveOwnConfig(): Promise<OwnConfig> {
  const { file } = userPlaces();
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    await writeFile(file, FIRST, { flag: 'wx', mode: 0o600 });
    return { file, created: true };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return { file, created: false };
    throw cause;
  }
}

/** What is put behind the bridge is governed by the person's own file, unless another was named. */
export async function ownConfigFor(
  { config, undo }: CommonOptions & { readonly undo?: boolean },
  written: boolean,
): Promise<OwnConfig | undefined> {
  return written && !undo && !config ? await haveOwnConfig() : undefined;
}

export function aboutConfig(own: OwnConfig | undefined): string {
  return own?.created ? `Your own configuration was made: ${tilde(own.file)}\n\n` : '';
}

/** The options that say which configuration and which log are meant, for an editor that starts us somewhere else. */
export function optionsKept({ config, data }: CommonOptions): readonly string[] {
  return [...(config ? ['--config', resolve(config)] : []), ...(data ? ['--data', resolve(data)] : [])];
}
