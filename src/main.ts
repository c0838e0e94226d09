#!/usr/bin/env node
/** The command line. Each command is loaded when it is called, so that `--help` costs nothing. */
import { CommanderError } from 'commander';
import { EXIT } from './cli/exit-codes.ts';
import { createProgram } from './cli/tree/program.ts';

const program = createProgram();

// Whoever reads us may stop reading: "tollbridge log | head" is no mistake.
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
      const { misunderstood } = await import('./cli/misunderstood.ts');
      process.exitCode = misunderstood(thrown, program, process.argv.slice(2));
    }
  }
}
