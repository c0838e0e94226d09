/** Definitions of `store copy` and `store check`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish } from '../../run-command.ts';

export function addStore(program: Command): void {
  const store = program.command('store').description('the log as a file or database: copy it, check it');
  store
    .command('copy')
    .description('copy the log to a new file or database, and verify every receipt and event there')
    .argument('<from>', 'a file, a data directory, or postgres://USER@HOST:PORT/DATABASE')
    .argument('<to>', 'the same; there must be no log yet')
    .option(
      '--from-secret <name>',
      'name of the secret with the password of <from> (default: store.secret for store.url)',
    )
    .option('--to-secret <name>', 'name of the secret with the password of <to> (default: store.secret for store.url)')
    .option('--from-schema <name>', 'schema of the tables in <from> (default: tollbridge)')
    .option('--to-schema <name>', 'schema of the tables in <to> (default: tollbridge)')
    .option(
      '--keys <name>',
      'name of the secret that keys are sealed under in a database (default: store.keys for store.url)',
    )
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`Everything that is in a log is copied: events, rows, receipts and trees, files, idempotency records. Stop the gateways first; <from> is
only read. Until the copy is verified no gateway opens it, and copying again begins anew. Keys and open questions stay in the data
directory (--data); those that lie in <from>, sealed, are copied too, to a database or to that directory. See docs/postgres.md.

  tollbridge store copy ~/.tollbridge postgres://tollbridge@db.example/tollbridge --to-secret store_password`),
    )
    .action((from: string, to: string, _: object, self: Command) =>
      finish(async () => (await import('./copy.ts')).storeCopy(from, to, self.optsWithGlobals())),
    );
  store
    .command('check')
    .description('check the log: versions, durability, receipts, events, sequences and rows')
    .argument('[which]', 'a file, a data directory, or a URL (default: the configured log)')
    .option('--secret <name>', 'name of the secret with the password (default: store.secret for store.url)')
    .option('--schema <name>', 'schema of the tables (default: tollbridge)')
    .option('--keys <name>', 'name of the secret that keys are sealed under there (default: store.keys for store.url)')
    .option('--json', 'one JSON object per finding')
    .addHelpText(
      'after',
      folded(`Opens the log, which brings an older schema up to date, and reads all of it: the chain of receipts and their signatures, the tree over
the events, the sequences of each resource, and every row against what its events fold to. Each problem is printed with a fix
(exit 1). A gateway may run meanwhile.`),
    )
    .action((which: string | undefined, _: object, self: Command) =>
      finish(async () => (await import('./check.ts')).storeCheck(which, self.optsWithGlobals())),
    );
}
