/** Definitions of `keys` and `vault`. */
import type { Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { named, run } from '../../run-command.ts';

export function addKeys(program: Command): void {
  program.commandsGroup('Keys and secrets:');
  const keys = program
    .command('keys')
    .description('API keys for clients on other machines, and the key that signs receipts');
  keys
    .command('create')
    .description('create an API key and print it, once')
    .argument('<name>', 'a name for the list, for example what the key is for')
    .option('--for <preset>', 'scopes of a role: a2a-peer, ahp-agent, mcp-client, editor, approver or admin')
    .option('--actor <id>', 'actor id in the log (default: the name)')
    .option('--kind <kind>', 'person, service or agent (default: as the preset, or service)')
    .option('--tenant <id>', 'limit the key to this tenant')
    .option('--workspace <id...>', 'limit the key to these workspaces')
    .option('--door <door...>', 'limit the key to these doors: harn, acp, mcp, a2a, ahp, runs')
    .option('--agent <agent...>', 'limit the key to these agents; others do not exist for it')
    .option('--scope <scope...>', "scopes such as tasks:write, receipts:read, or '*'; added to those of --for")
    .option('--expires <when>', '30d, 12h, or a date')
    .option('--json', 'one JSON object that includes the key')
    .addHelpText(
      'after',
      folded(`A client sends the key as "Authorization: Bearer ...". Its requests are logged under that actor and limited to the key's scopes.
Only a hash is stored, so the key cannot be shown again. Clients on this machine need no key: serve prints a token.
A key sees the work it started; with the scope others:read, or '*', all work. It cannot approve acts that it proposed.

  tollbridge keys create partner --for a2a-peer --expires 90d
  tollbridge keys create ci --scope tasks:write tasks:read --expires 30d`),
    )
    .action(named(async (name, options) => (await import('./keys.ts')).createKey(name, options)));
  keys
    .command('list')
    .description('list API keys, without their values')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded(
        'Columns: id, state (active, expired or revoked), name, actor, preset, scopes, doors, visibility of work by others, expiry.',
      ),
    )
    .action(run(async (options) => (await import('./keys.ts')).listKeys(options)));
  keys
    .command('revoke')
    .description('revoke an API key')
    .argument('<id>', 'the first column of "tollbridge keys list"')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded('Takes effect at once, also in a running gateway. The events it caused stay in the log.'),
    )
    .action(named(async (id, options) => (await import('./keys.ts')).revokeKey(id, options)));
  keys
    .command('rotate')
    .description('replace the key that signs receipts')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`The old public key is kept, so that old receipts can still be verified; the old private key is deleted. A running gateway
uses the new key from its next receipt on. API keys do not change.`),
    )
    .action(run(async (options) => (await import('./rotate.ts')).rotateKey(options)));

  const vault = program.command('vault').description('named secrets, encrypted on disk');
  vault
    .command('set')
    .description('store a secret; its value is read from standard input')
    .argument('<name>', 'the name used in the configuration')
    .option('--vault <name>', 'which vault (default: the first that can be written)')
    .option('--json', 'one JSON object: the vault and the name')
    .addHelpText(
      'after',
      folded(`The configuration refers to tokens for remote agents, tools and collectors by name; the vault stores their values encrypted. A
secret that was read from the vault is redacted in the log, receipts and errors.

  tollbridge vault set far-token < token.txt`),
    )
    .action(named(async (name, options) => (await import('./vault.ts')).vaultSet(name, options)));
  vault
    .command('list')
    .description('list names, without values')
    .option('--vault <name>', 'only this vault')
    .option('--json', 'one JSON object per line')
    .addHelpText(
      'after',
      folded('Columns: vault and name, as the configuration writes them, and the time the secret was set.'),
    )
    .action(run(async (options) => (await import('./vault.ts')).vaultList(options)));
  vault
    .command('remove')
    .description('delete a secret')
    .argument('<name>', 'as "tollbridge vault list" shows it')
    .option('--vault <name>', 'which vault (default: the first that can be written)')
    .option('--json', 'one JSON object: the vault and the name')
    .addHelpText(
      'after',
      folded('Later lookups fail with an error that names the secret (exit 3 when it does not exist).'),
    )
    .action(named(async (name, options) => (await import('./vault.ts')).vaultRemove(name, options)));
}
