/** Definition of `console`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { named, run } from '../../run-command.ts';

export function addConsole(program: Command): void {
  const console = program
    .command('console')
    .description('sign in to the web console, and end sign-ins')
    .addHelpText(
      'after',
      folded(`The console is served by "tollbridge serve" at its own address: approvals, activity, receipts, rules. The link is for one
sign-in within ten minutes; the session ends after twelve hours, or with sign-out. docs/console.md says more.

  tollbridge console link
  tollbridge console sign-out`),
    );
  console
    .command('link')
    .description('print a link that signs one browser in, once')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(
        'The link opens the console of a gateway that serves this data directory. It is valid once, for ten minutes.',
      ),
    )
    .action(run(async (options) => (await import('./console.ts')).consoleLink(options)));
  console
    .command('sessions')
    .description('show the open sessions')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded('Each line: the id of the session, the actor, how that actor signed in, since when and until when.'),
    )
    .action(run(async (options) => (await import('./console.ts')).listSessions(options)));
  console
    .command('sign-out')
    .description('end every session, or the one named')
    .argument('[id]', 'the session, as "tollbridge console sessions" shows it')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded('Takes effect at the next request of the page, also while the gateway runs. A new link signs in again.'),
    )
    .action(named(async (id, options) => (await import('./console.ts')).signOut(id, options)));
}
