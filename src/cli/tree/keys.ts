/** The commands about keys and secrets: keys, vault. */
import type { Command } from 'commander';
import { named, run } from '../acting.ts';

export function addKeys(program: Command): void {
  program.commandsGroup('Keys and secrets:');
  const keys = program
    .command('keys')
    .description('API keys, for whoever comes from elsewhere; and the key that signs receipts');
  keys
    .command('create')
    .description('make an API key and show it, this once')
    .argument('<name>', 'what it is for, so that it can be recognised in the list')
    .option('--actor <id>', 'who its holder is in the log (default: the name)')
    .option('--kind <kind>', 'person, service or agent (default: service)')
    .option('--tenant <id>', 'what others have is not there for it')
    .option('--workspace <id...>', 'the only workspaces there are for it')
    .option('--scope <scope...>', "what it may do: tasks:write, receipts:read, ..., or '*'")
    .option('--expires <when>', '30d, 12h, or a date')
    .option('--json', 'one JSON object, the key in it')
    .action(named(async (name, options) => (await import('../keys.ts')).createKey(name, options)));
  keys
    .command('list')
    .description('show what API keys there are, never the keys')
    .option('--json', 'one JSON object per line')
    .action(run(async (options) => (await import('../keys.ts')).listKeys(options)));
  keys
    .command('revoke')
    .description('from now on this API key is nobody')
    .argument('<id>', 'the first column of "tollbridge keys list"')
    .option('--json', 'one JSON object')
    .action(named(async (id, options) => (await import('../keys.ts')).revokeKey(id, options)));
  keys
    .command('rotate')
    .description('sign receipts with a new key from now on')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      `
The old key is retired: its public half stays, so that old receipts can be checked for good, and its private half is
dropped. A running gateway takes up the new key with its next receipt. API keys are not touched.`,
    )
    .action(run(async (options) => (await import('../keys-rotate.ts')).rotateKey(options)));

  const vault = program.command('vault').description('secrets by name, encrypted at rest');
  vault
    .command('set')
    .description('keep a secret; its value is read from standard input')
    .argument('<name>')
    .option('--vault <name>', 'which vault (default: the first that can be written)')
    .action(named(async (name, options) => (await import('../vault.ts')).vaultSet(name, options)));
  vault
    .command('list')
    .description('show names, never values')
    .option('--vault <name>', 'only this vault')
    .option('--json', 'one JSON object per line')
    .action(run(async (options) => (await import('../vault.ts')).vaultList(options)));
  vault
    .command('remove')
    .description('forget a secret')
    .argument('<name>')
    .option('--vault <name>', 'which vault (default: the first that can be written)')
    .action(named(async (name, options) => (await import('../vault.ts')).vaultRemove(name, options)));
}
