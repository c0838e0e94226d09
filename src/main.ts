#!/usr/bin/env node
/** The command-line entry point. Each command is loaded when it is called, so that `--help` loads none of them. */
import { CommanderError } from 'commander';
import { createProgram } from './cli/commands/program.ts';
import { EXIT } from './cli/output/exit-codes.ts';

const program = createProgram();

// The program that reads our output may close the pipe early: `tollbridge log | head` is not an error.
process.stdout.on('error', (cause: NodeJS.ErrnoException) => {
  process.exit(cause.code === 'EPIPE' ? EXIT.done : EXIT.unusable);
});

if (process.argv.length <= 2) program.outputHelp();
else {
  try {
    await program.parseAsync();
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    if (thrown.exitCode === 0) process.exitCode = EXIT.done;
    else {
      const { usageError } = await import('./cli/output/usage-error.ts');
      process.exitCode = usageError(thrown, program, process.argv.slice(2));
    }
  }
}
