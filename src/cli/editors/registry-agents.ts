/**
 * Agents that an editor starts from a registry or an extension: no file of the person names a command that could be wrapped, so
 * the person is told which command adds the same agent behind tollbridge.
 */
import { typed } from './our-command.ts';

/** The commands of agents that registries have, by a word of their names. */
const COMMANDS: readonly (readonly [string, readonly string[]])[] = [
  ['claude', ['npx', '-y', '@agentclientprotocol/claude-agent-acp']],
  ['codex', ['npx', '-y', '@agentclientprotocol/codex-acp']],
  ['gemini', ['npx', '-y', '@google/gemini-cli', '--acp']],
  ['qwen', ['npx', '-y', '@qwen-code/qwen-code', '--acp']],
  ['opencode', ['opencode', 'acp']],
];

const UNKNOWN = "<the agent's command>";

/** Why an entry without a command is left, and what to do about it. `init` is the command for this editor. */
export function withoutCommand(entry: string, type: 'registry' | 'extension', init: string): string {
  const from = type === 'extension' ? 'an extension' : 'its registry';
  const [, command] = COMMANDS.find(([word]) => entry.toLowerCase().includes(word)) ?? [];
  return `the editor starts it from ${from}; to have it behind tollbridge: ${adding(init, entry, command)}`;
}

/** How to have agents behind tollbridge that are in none of the editor's files. */
export function notInFiles(from: string, init: string): readonly string[] {
  return [
    `Agents from ${from} are in no settings file. To have one behind tollbridge, add it with its command, and choose that one:`,
    ...COMMANDS.map(([name, command]) => `  ${adding(init, name, command)}`),
    `  ${adding(init, 'NAME', undefined)}`,
  ];
}

function adding(init: string, entry: string, command: readonly string[] | undefined): string {
  return `${init} --name ${typed([`${entry}-tollbridge`])} -- ${command ? typed(command) : UNKNOWN}`;
}
