/**
 * Agents that Zed starts from its registry or from an extension: its settings name no command that could be wrapped, so the
 * person is told how to add the agent behind tollbridge.
 */
import { typed, us } from './our-command.ts';

/** The commands of agents that registries have, by a word of their names. */
const COMMANDS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/claude/i, ['npx', '-y', '@agentclientprotocol/claude-agent-acp']],
  [/codex/i, ['npx', '-y', '@agentclientprotocol/codex-acp']],
  [/gemini/i, ['npx', '-y', '@google/gemini-cli', '--acp']],
  [/qwen/i, ['npx', '-y', '@qwen-code/qwen-code', '--acp']],
  [/opencode/i, ['opencode', 'acp']],
];

/** Why an entry without a command is left, and what to do about it. */
export function withoutCommand(entry: string, type: 'registry' | 'extension'): string {
  const from = type === 'extension' ? 'an extension' : 'its registry';
  const [, command] = COMMANDS.find(([name]) => name.test(entry)) ?? [];
  const words = command ? typed(command) : "<the agent's command>";
  const name = typed([`${entry}-tollbridge`]);
  return `the editor starts it from ${from}; to have it behind tollbridge: ${us()} init zed --name ${name} -- ${words}`;
}
