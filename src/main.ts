#!/usr/bin/env node
/** The command line. Each command is loaded when it is called, so that `--help` costs nothing. */
import { Command } from 'commander';
import { VERSION } from './version.ts';

const program = new Command('tollbridge')
  .description('One bridge for every agent protocol: one policy, one approval inbox, one log, one proof.')
  .version(VERSION)
  .option('--config <file>', 'configuration (default: tollbridge.yaml here, if there is one)')
  .option('--data <dir>', 'where log and keys are kept (default: ~/.tollbridge)');

program
  .command('serve')
  .description('open every door on one port, with the built-in demo agent behind them')
  .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
  .option('--port <number>', 'port to listen on (default: 4319)')
  .option('--journal <file>', 'write one line for every effect the demo tools have')
  .action(run(async (options) => (await import('./cli/serve.ts')).serve(options)));

program
  .command('ahp')
  .description('decide for agents that speak AHP: over standard input and output, or at a Unix socket')
  .option('--stdio', 'one agent, which started this process')
  .option('--socket <path>', 'agents that may open this socket')
  .action(run(async (options) => (await import('./cli/ahp.ts')).ahp(options)));

program
  .command('approvals')
  .description('show what waits for a person')
  .option('--json', 'one JSON object per line')
  .action(run(async (options) => (await import('./cli/approvals.ts')).listApprovals(options)));
program
  .command('approve')
  .description('say yes to one question')
  .argument('<id>', 'the question, as `tollbridge approvals` shows it')
  .argument('[reason]')
  .action(answer(true));
program
  .command('deny')
  .description('say no to one question')
  .argument('<id>', 'the question, as `tollbridge approvals` shows it')
  .argument('[reason]')
  .action(answer(false));

const policy = program.command('policy').description('the rules in force');
policy
  .command('show')
  .description('print the rules as Cedar, exactly as they are evaluated')
  .action(run(async (options) => (await import('./cli/policy.ts')).policyShow(options)));
policy
  .command('check')
  .description('say whether the rules can be loaded, and what is wrong with them')
  .action(run(async (options) => (await import('./cli/policy.ts')).policyCheck(options)));

const keys = program.command('keys').description('API keys, for whoever comes from elsewhere');
keys
  .command('create')
  .description('make a key and show it, this once')
  .argument('<name>', 'what it is for, so that it can be recognised in the list')
  .option('--actor <id>', 'who its holder is in the log (default: the name)')
  .option('--kind <kind>', 'person, service or agent (default: service)')
  .option('--tenant <id>', 'what others have is not there for it')
  .option('--workspace <id...>', 'the only workspaces there are for it')
  .option('--scope <scope...>', "what it may do: tasks:write, receipts:read, ..., or '*'")
  .option('--expires <when>', '30d, 12h, or a date')
  .option('--json', 'one JSON object, the key in it')
  .action(named(async (name, options) => (await import('./cli/keys.ts')).createKey(name, options)));
keys
  .command('list')
  .description('show what keys there are, never the keys')
  .option('--json', 'one JSON object per line')
  .action(run(async (options) => (await import('./cli/keys.ts')).listKeys(options)));
keys
  .command('revoke')
  .description('from now on this key is nobody')
  .argument('<id>', 'the first column of `tollbridge keys list`')
  .option('--json', 'one JSON object')
  .action(named(async (id, options) => (await import('./cli/keys.ts')).revokeKey(id, options)));

const vault = program.command('vault').description('secrets by name, encrypted at rest');
vault
  .command('set')
  .description('keep a secret; its value is read from standard input')
  .argument('<name>')
  .option('--vault <name>', 'which vault (default: the first that can be written)')
  .action(named(async (name, options) => (await import('./cli/vault.ts')).vaultSet(name, options)));
vault
  .command('list')
  .description('show names, never values')
  .option('--vault <name>', 'only this vault')
  .option('--json', 'one JSON object per line')
  .action(run(async (options) => (await import('./cli/vault.ts')).vaultList(options)));
vault
  .command('remove')
  .description('forget a secret')
  .argument('<name>')
  .option('--vault <name>', 'which vault (default: the first that can be written)')
  .action(named(async (name, options) => (await import('./cli/vault.ts')).vaultRemove(name, options)));

program
  .command('export')
  .description('write all receipts, the public keys and a signed end to a directory')
  .argument('<dir>')
  .action((dir: string, _: object, command: Command) =>
    finish(async () => (await import('./cli/receipts.ts')).exportReceipts(dir, command.optsWithGlobals())),
  );
program
  .command('verify')
  .description('check exported receipts; needs nothing but the files')
  .argument('<path>', 'a directory written by export, or a receipts file')
  .option('--keys <file>', 'public keys (default: keys.json beside the receipts)')
  .option('--head <file>', 'signed tree head (default: tree-head.json beside the receipts)')
  .action((path: string, options: object) =>
    finish(async () => {
      process.exitCode = await (await import('./cli/receipts.ts')).verifyFiles(path, options);
    }),
  );

function run<O extends object>(action: (options: O) => Promise<void>) {
  return (_: object, command: Command) => finish(() => action(command.optsWithGlobals() as O));
}

function named<O extends object>(action: (name: string, options: O) => Promise<void>) {
  return (name: string, _: object, command: Command) => finish(() => action(name, command.optsWithGlobals() as O));
}

function answer(approved: boolean) {
  return (id: string, reason: string | undefined, _: object, command: Command) =>
    finish(async () => (await import('./cli/approvals.ts')).answer(id, approved, reason, command.optsWithGlobals()));
}

async function finish(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (thrown) {
    const { complain } = await import('./cli/context.ts');
    process.exitCode = complain(thrown);
  }
}

await program.parseAsync();
