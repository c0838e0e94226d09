/** Runs a parsed command and sets its exit code. Commands are loaded here, when they are called. */
import type { Command } from 'commander';

/** A command that takes options only. */
export function run<O extends object>(action: (options: O) => Promise<unknown>) {
  return (_: object, command: Command) => finish(() => action(command.optsWithGlobals() as O));
}

/** A command with one argument. */
export function named<O extends object>(action: (name: string, options: O) => Promise<unknown>) {
  return (name: string, _: object, command: Command) => finish(() => action(name, command.optsWithGlobals() as O));
}

/** A number is an exit code; an error is printed, and has an exit code too. */
export async function finish(action: () => Promise<unknown>): Promise<void> {
  try {
    const code = await action();
    if (typeof code === 'number') process.exitCode = code;
  } catch (thrown) {
    const { printError } = await import('./output/error-output.ts');
    process.exitCode = printError(thrown);
  }
}
