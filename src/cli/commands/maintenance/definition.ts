/** Definitions of `doctor` and `completion`. */
import { Argument, type Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish } from '../../run-command.ts';

export function addUpkeep(program: Command): void {
  program.commandsGroup('Help:');
  program
    .command('doctor')
    .description('check this installation, and print how to fix each problem')
    .argument('[command...]', 'after --: an agent or server command to check as well')
    .option('--port <number>', 'the port to check (default: the configured one)')
    .option('--json', 'one JSON object per finding')
    .addHelpText(
      'after',
      folded(`Checks Node, configuration, rules, port, data directory, log, permissions of key files, and the clock. With "-- COMMAND" also checks
that program: whether it is found, starts and keeps running, and whether it writes anything but protocol messages to standard
output. Exit 1: at least one problem was found.`),
    )
    .action((command: readonly string[], _: object, self: Command) =>
      finish(async () => (await import('./doctor.ts')).doctor(command, self.optsWithGlobals())),
    );
  program
    .command('completion')
    .description('print a script that completes commands and options in your shell')
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      folded(`  bash   tollbridge completion bash >> ~/.bashrc
  zsh    tollbridge completion zsh >> ~/.zshrc
  fish   tollbridge completion fish >> ~/.config/fish/config.fish`),
    )
    .action((shell: string) => finish(async () => (await import('./completion.ts')).completion(shell, program)));
}
