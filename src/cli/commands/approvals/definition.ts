/** Definitions of `approvals`, `approve` and `deny`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, run } from '../../run-command.ts';

export function addAnswers(program: Command): void {
  program.commandsGroup('Approvals:');
  program
    .command('approvals')
    .description('list pending approvals')
    .option('-w, --watch', 'keep running, and print new approvals and their answers')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded(`When a rule says "ask", the act waits and an approval appears here. Each has an id; its last six characters are enough for
approve and deny. An answer is valid for exactly the act that was shown, once. Works while a gateway is running.`),
    )
    .action(run(async (options) => (await import('./approvals.ts')).listApprovals(options)));
  program
    .command('approve')
    .description('approve one act, or answer one question')
    .argument('<id>', 'id shown by "tollbridge approvals", or its last characters')
    .argument('[reason]', 'recorded with the answer')
    .option(
      '--value <value>',
      'the answer to a question that wants a value: a text, or JSON where the question says so',
    )
    .option('--arguments <json>', 'run with these arguments instead: a JSON object, or @FILE')
    .option('--for <time>', 'do not ask again about this tool: "session", or for a time such as 30m, 2h, 1d')
    .option('--json', 'the approval after the answer, as one JSON object')
    .addHelpText(
      'after',
      folded(
        `The act that was shown runs once. The first answer counts; a later answer is refused (exit 4).
With --arguments the act runs with those arguments. They are first checked against the tool's schema and decided by the rules; if
the rules block them, the answer is refused and the approval stays pending. Agents that accept only yes or no cannot get other arguments.
With --for the same tool of the same server is not asked about again, with any arguments: in this session, or for this caller until the
time has passed. What a rule blocks stays blocked.`,
      ),
    )
    .action(answer(true));
  program
    .command('deny')
    .description('deny one act')
    .argument('<id>', 'id shown by "tollbridge approvals", or its last characters')
    .argument('[reason]', 'sent to the agent, and recorded with the answer')
    .option('--json', 'the approval after the answer, as one JSON object')
    .addHelpText('after', folded('The act does not run, and the agent gets the reason. The first answer counts.'))
    .action(answer(false));
}

function answer(approved: boolean) {
  return (id: string, reason: string | undefined, _: object, command: Command) =>
    finish(async () => (await import('./approvals.ts')).answer(id, approved, reason, command.optsWithGlobals()));
}
