/** Definition of `ahp`, which decides for agents that ask before they act. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { run } from '../../run-command.ts';

export function addAhp(program: Command): void {
  program
    .command('ahp')
    .description('decide for agents that speak AHP: over standard input and output, or at a Unix socket')
    .option('--stdio', 'one agent, which started this process')
    .option('--socket <path>', 'agents that may open this socket')
    .addHelpText(
      'after',
      folded(`AHP is a protocol by which an agent asks before each act and reports after it. Point the agent at this command; rules,
questions, log and receipts are the same as everywhere else. See docs/ahp.md.`),
    )
    .action(run(async (options) => (await import('./ahp.ts')).ahp(options)));
}
