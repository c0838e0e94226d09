/** Definition of `ahp`, which decides for agents that ask before they act. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { run } from '../../run-command.ts';

export function addAhp(program: Command): void {
  program
    .command('ahp')
    .description('decide for agents that speak AHP, over standard input and output or a Unix socket')
    .option('--stdio', 'serve the one agent that started this process')
    .option('--socket <path>', 'serve agents that connect to this Unix socket')
    .addHelpText(
      'after',
      folded(`With AHP (Agent Harness Protocol) an agent asks before each act and reports after it. Configure the agent to use this command; rules,
approvals, log and receipts are the same as for every other protocol. See docs/ahp.md.`),
    )
    .action(run(async (options) => (await import('./ahp.ts')).ahp(options)));
}
