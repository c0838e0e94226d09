/** Definitions of `demo`, `serve` and `init`. */
import { Argument, type Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish, run } from '../../run-command.ts';

export function addBegin(program: Command): void {
  program.commandsGroup('Begin:');
  program
    .command('demo')
    .description('watch an agent ask before it acts, answer it, and check the proof; everything is built in')
    .option('--yes', 'say yes to the question, for scripts')
    .option('--no', 'say no to it')
    .option('--wait', 'do not ask here; wait until somebody answers elsewhere')
    .option('--port <number>', 'also listen here, so that the question can be answered over HTTP')
    .option('--json', 'events as they are in the log, one JSON object per line, then one that sums up')
    .addHelpText(
      'after',
      folded(`A small agent reads a note, which a rule allows, and then wants to send a mail, which a rule leaves to a person: you.
Answer y or n here, or from another terminal with "tollbridge approve". Then a signed receipt is written, and you are
invited to break it. Everything is in a directory of its own, which --data can name.`),
    )
    .action(run(async (options) => (await import('./demo.ts')).demo(options)));

  program
    .command('serve')
    .description('open every door on one port, with the built-in demo agent behind them')
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option('--port <number>', 'port to listen on (default: 4319)')
    .option('--journal <file>', 'write one line for every effect the demo tools have')
    .option('--json', 'one JSON object once it listens, with the address and the token')
    .addHelpText(
      'after',
      folded(`Prints where it listens, with a token for this machine, which configuration it took, where the log is, and how to answer questions.
Agents, tools and rules come from your own configuration, or from --config; a tollbridge.yaml in this directory adds
restricting rules once you trust it. Ctrl-C lets running work end; questions that wait keep waiting for the next start.`),
    )
    .action(run(async (options) => (await import('./serve.ts')).serve(options)));

  program
    .command('init')
    .description('put the agents of an editor, or the tools of an agent, behind tollbridge')
    .usage('[options] [where] [-- <command...>]')
    .addArgument(
      new Argument('[where]', 'whose settings; without it only your own configuration is made').choices([
        'zed',
        'jetbrains',
        'vscode',
        'neovim',
        'claude-desktop',
        'claude-code',
        'cursor',
      ]),
    )
    .argument('[command...]', 'after --: one more to add, by the command that starts it')
    .option('--write', 'write the settings; without it they are only shown')
    .option('--undo', 'take tollbridge out again')
    .option('--settings <file>', 'settings elsewhere than usual')
    .option('--name <name>', 'what a new entry is called')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      folded(`Shows what would change, line by line, and how to undo it. Only the commands are changed, so that what the editor starts is
started by tollbridge instead; comments and everything else in the settings stay as they are. For Neovim a file of its own is
written, which it loads by itself; your Lua is not touched. The first time, your own configuration is made too.
--config and --data are kept in what the editor starts.

  tollbridge init                     make your own configuration
  tollbridge init zed                 what would change for the agents Zed knows
  tollbridge init zed --write         change it
  tollbridge init zed -- npx my-agent add an agent, behind tollbridge from the start`),
    )
    .action((where: string | undefined, words: string[], _: object, command: Command) =>
      finish(async () => (await import('./init.ts')).init(where, words, command.optsWithGlobals())),
    );
}
