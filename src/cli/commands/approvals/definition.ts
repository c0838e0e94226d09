/** Definitions of `approvals`, `approve` and `deny`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, run } from '../../run-command.ts';

export function addAnswers(program: Command): void {
  program.commandsGroup('Answer:');
  program
    .command('approvals')
    .description('show what waits for a person')
    .option('-w, --watch', 'stay, and show questions as they come and how they are answered')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded(`When a rule says "ask", the act waits and a question appears here. Each has an id; its last six characters are enough for
approve and deny. An answer counts for exactly the act that was shown, and once. Works beside a running gateway.`),
    )
    .action(run(async (options) => (await import('./approvals.ts')).listApprovals(options)));
  program
    .command('approve')
    .description('say yes to one question')
    .argument('<id>', 'the question, as "tollbridge approvals" shows it, or its last characters')
    .argument('[reason]', 'goes on record with the answer')
    .option('--arguments <json>', 'run these arguments instead: a JSON object, or @file with one')
    .option('--json', 'the question as it now stands, one JSON object')
    .addHelpText(
      'after',
      folded(
        `The act that was shown runs, once. The first answer counts: a later one is told that it came too late (exit 4).
With --arguments the act runs with those instead. They are checked against the tool's schema and decided by the rules first; what
the rules block is refused and the question stays open. An agent that can only hear yes or no cannot be given other arguments.`,
      ),
    )
    .action(answer(true));
  program
    .command('deny')
    .description('say no to one question')
    .argument('<id>', 'the question, as "tollbridge approvals" shows it, or its last characters')
    .argument('[reason]', 'is told to the agent, and goes on record with the answer')
    .option('--json', 'the question as it now stands, one JSON object')
    .addHelpText('after', folded('The act does not run, and the agent is told the reason. The first answer counts.'))
    .action(answer(false));
}

function answer(approved: boolean) {
  return (id: string, reason: string | undefined, _: object, command: Command) =>
    finish(async () => (await import('./approvals.ts')).answer(id, approved, reason, command.optsWithGlobals()));
}
