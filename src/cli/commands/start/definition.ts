/** Definitions of `demo`, `serve` and `init`. */
import { Argument, type Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, run } from '../../run-command.ts';

export function addBegin(program: Command): void {
  program.commandsGroup('Start:');
  program
    .command('demo')
    .description('see a decision, an approval and a verified receipt, with a built-in agent')
    .option('--yes', 'approve the act, for scripts')
    .option('--no', 'deny the act, for scripts')
    .option('--wait', 'do not ask in this terminal; wait for an answer from another one')
    .option('--port <number>', 'also listen on this port, so that the approval can be answered over HTTP')
    .option('--json', 'events, one JSON object per line, then a summary')
    .addHelpText(
      'after',
      folded(`A small agent reads a note, which a rule allows, and then asks to send a mail, which needs your approval.
Answer y or n here, or from another terminal with "tollbridge approve". The gateway then writes a signed receipt, and the demo shows
how to verify it and how verification fails after a change. Its files are in a new directory, or in the one --data names.`),
    )
    .action(run(async (options) => (await import('./demo.ts')).demo(options)));

  program
    .command('serve')
    .description('serve all protocols on one port')
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option('--port <number>', 'port to listen on (default: 4319)')
    .option('--workers <number>', 'processes that share the port, or auto: one per processor (default: 1)')
    .option('--journal <file>', 'append one line for every effect of the demo tools')
    .option('--json', 'print one JSON object with the address and the token')
    .addHelpText(
      'after',
      folded(`Prints its address, a token for clients on this machine, the configuration files, the log file, and how to answer approvals.
Agents, tools and rules come from your own configuration or from --config; without agents, a built-in demo agent answers. A
tollbridge.yaml in this directory adds restricting rules once you trust it. Ctrl-C ends running work; approvals stay pending.`),
    )
    .action(run(async (options) => (await import('./serve.ts')).serve(options)));

  program
    .command('init')
    .description('configure an editor or client to use tollbridge')
    .usage('[options] [where] [-- <command...>]')
    .addArgument(
      new Argument('[where]', 'the editor or client; without it only your own configuration is created').choices([
        'zed',
        'jetbrains',
        'vscode',
        'neovim',
        'claude-desktop',
        'claude-code',
        'cursor',
      ]),
    )
    .argument('[command...]', 'after --: the command of an agent or server to add')
    .option('--write', 'write the settings (default: only show the changes)')
    .option('--undo', 'remove tollbridge from the settings')
    .option('--settings <file>', 'the settings file, if it is not in the usual location')
    .option('--name <name>', 'name of a new entry')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`Shows the changes as a diff, and how to undo them. Only the commands change, so that the editor starts tollbridge, which starts
the original command; comments and all other settings stay. For Neovim a separate file is written, which Neovim loads
automatically; your Lua is not changed. The first run also creates your own configuration.
--config and --data are passed on to the commands the editor starts.

  tollbridge init                     create your own configuration
  tollbridge init zed                 show the changes for the agents in Zed's settings
  tollbridge init zed --write         write them
  tollbridge init zed -- npx my-agent add an agent that runs behind tollbridge`),
    )
    .action((where: string | undefined, words: string[], _: object, command: Command) =>
      finish(async () => (await import('./init.ts')).init(where, words, command.optsWithGlobals())),
    );
}
