/** Definitions of `keys` and `vault`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { named, run } from '../../run-command.ts';

export function addKeys(program: Command): void {
  program.commandsGroup('Keys and secrets:');
  const keys = program
    .command('keys')
    .description('API keys, for whoever comes from elsewhere; and the key that signs receipts');
  keys
    .command('create')
    .description('make an API key and show it, this once')
    .argument('<name>', 'what it is for, so that it can be recognised in the list')
    .option(
      '--for <preset>',
      'a2a-peer, ahp-agent, mcp-client, editor, approver or admin: what that takes, and no more',
    )
    .option('--actor <id>', 'who its holder is in the log (default: the name)')
    .option('--kind <kind>', 'person, service or agent (default: as the preset says, or service)')
    .option('--tenant <id>', 'what others have is not there for it')
    .option('--workspace <id...>', 'the only workspaces there are for it')
    .option('--door <door...>', 'the only doors it opens: harn, acp, mcp, a2a, ahp, runs')
    .option('--scope <scope...>', "what it may do: tasks:write, receipts:read, ..., or '*'; added to what --for gives")
    .option('--expires <when>', '30d, 12h, or a date')
    .option('--json', 'one JSON object, the key in it')
    .addHelpText(
      'after',
      folded(`Whoever shows the key ("Authorization: Bearer ...") is that actor in the log, and may do what its scopes say and no more.
Only a hash of it is kept, so it cannot be shown again. On this machine alone no key is needed: serve prints a token.
It sees the work it started itself; with the scope others:read, or '*', all work. What it proposed it cannot approve.

  tollbridge keys create partner --for a2a-peer --expires 90d
  tollbridge keys create ci --scope tasks:write tasks:read --expires 30d`),
    )
    .action(named(async (name, options) => (await import('./keys.ts')).createKey(name, options)));
  keys
    .command('list')
    .description('show what API keys there are, never the keys')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded(
        'Each line: its id, whether it is active, expired or revoked, what it was made for, whose it is, what it may do, at which doors, whether it sees the work of others, until when.',
      ),
    )
    .action(run(async (options) => (await import('./keys.ts')).listKeys(options)));
  keys
    .command('revoke')
    .description('from now on this API key is nobody')
    .argument('<id>', 'the first column of "tollbridge keys list"')
    .option('--json', 'one JSON object')
    .addHelpText('after', folded('Counts at once, also for a gateway that runs. What its holder did stays in the log.'))
    .action(named(async (id, options) => (await import('./keys.ts')).revokeKey(id, options)));
  keys
    .command('rotate')
    .description('sign receipts with a new key from now on')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`The old key is retired: its public half stays, so that old receipts can be checked for good, and its private half is
dropped. A running gateway takes up the new key with its next receipt. API keys are not touched.`),
    )
    .action(run(async (options) => (await import('./rotate.ts')).rotateKey(options)));

  const vault = program.command('vault').description('secrets by name, encrypted at rest');
  vault
    .command('set')
    .description('keep a secret; its value is read from standard input')
    .argument('<name>', 'what the configuration calls it')
    .option('--vault <name>', 'which vault (default: the first that can be written)')
    .option('--json', 'one JSON object: the vault and the name')
    .addHelpText(
      'after',
      folded(`Agents, tools and collectors elsewhere want tokens; the configuration names them and the vault holds them, encrypted. A
secret that is looked up is taken out of everything that is written: log, receipts, errors.

  tollbridge vault set far-token < token.txt`),
    )
    .action(named(async (name, options) => (await import('./vault.ts')).vaultSet(name, options)));
  vault
    .command('list')
    .description('show names, never values')
    .option('--vault <name>', 'only this vault')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded('Each line: the vault and the name, as the configuration may write them, and when it was set.'),
    )
    .action(run(async (options) => (await import('./vault.ts')).vaultList(options)));
  vault
    .command('remove')
    .description('forget a secret')
    .argument('<name>', 'as "tollbridge vault list" shows it')
    .option('--vault <name>', 'which vault (default: the first that can be written)')
    .option('--json', 'one JSON object: the vault and the name')
    .addHelpText('after', folded('Whoever still needs it is told that it is not there (exit 3 when it never was).'))
    .action(named(async (name, options) => (await import('./vault.ts')).vaultRemove(name, options)));
}
