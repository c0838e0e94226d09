/** Definition of `a2a`, which serves an agent to A2A peers. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish } from '../../run-command.ts';

export function addA2a(program: Command): void {
  program
    .command('a2a')
    .description('let A2A peers call an ACP agent: tollbridge a2a -- COMMAND')
    .usage('[options] -- <command...>')
    .argument('<command...>', "the agent's command, after --")
    .option('--name <name>', 'name of the agent in rules, agent cards and the log (default: its command)')
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option('--port <number>', 'port to listen on (default: 4319)')
    .addHelpText(
      'after',
      folded(`Prints the agent's address and the token that peers on this machine need. Peers read its agent card, send messages over JSON-RPC or
HTTP+JSON (A2A 1.0 or 0.3), stream its updates and answer its questions. Rules decide every act, and every task has a receipt.`),
    )
    .action((agent: string[], _: object, command: Command) =>
      finish(async () => (await import('./a2a.ts')).a2a(agent, command.optsWithGlobals())),
    );
}
