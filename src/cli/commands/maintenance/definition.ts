/** Definitions of `doctor` and `completion`. */
import { Argument, type Command } from 'commander';
import { folded } from '../../output/help-text.ts';
import { finish } from '../../run-command.ts';

export function addUpkeep(program: Command): void {
  program.commandsGroup('Help:');
  program
    .command('doctor')
    .description('look for what could go wrong here, and say how to mend it')
    .argument('[command...]', 'after --: a program you want to put behind tollbridge')
    .option('--port <number>', 'the port to look at (default: the configured one)')
    .option('--json', 'one JSON object per finding')
    .addHelpText(
      'after',
      folded(`Looks at Node, the configuration and rules, the port, the data directory and its log, the modes of key files, and the clock. With
"-- COMMAND" also at that program: whether it is found, whether it starts and stays, and whether it writes anything but
protocol to its standard output, where editors and agents expect nothing else. Exit 1: something needs mending.`),
    )
    .action((command: readonly string[], _: object, self: Command) =>
      finish(async () => (await import('./doctor.ts')).doctor(command, self.optsWithGlobals())),
    );
  program
    .command('completion')
    .description('print a script that completes commands and options in your shell')
    .addArgument(new Argument('<shell>', 'the shell you type in').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      folded(`  bash   tollbridge completion bash >> ~/.bashrc
  zsh    tollbridge completion zsh >> ~/.zshrc
  fish   tollbridge completion fish >> ~/.config/fish/config.fish`),
    )
    .action((shell: string) => finish(async () => (await import('./completion.ts')).completion(shell, program)));
}
