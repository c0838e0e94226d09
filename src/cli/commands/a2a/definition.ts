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
    .option('--name <name>', 'what rules, cards and the log call the agent (default: its command)')
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option('--port <number>', 'port to listen on (default: 4319)')
    .addHelpText(
      'after',
      folded(`Prints where the agent is and the token peers on this machine need. Peers find its card, send it work over JSON-RPC or
HTTP+JSON (1.0 or 0.3), follow it and answer its questions; the rules decide, and every task has a receipt.`),
    )
    .action((agent: string[], _: object, command: Command) =>
      finish(async () => (await import('./a2a.ts')).a2a(agent, command.optsWithGlobals())),
    );
}
