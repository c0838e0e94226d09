/** From a parsed command to its file and its exit code. Commands are loaded here, when they are called. */
import type { Command } from 'commander';

/** A command that takes options only. */
export function run<O extends object>(action: (options: O) => Promise<unknown>) {
  return (_: object, command: Command) => finish(() => action(command.optsWithGlobals() as O));
}

/** A command about one thing. */
export function named<O extends object>(action: (name: string, options: O) => Promise<unknown>) {
  return (name: string, _: object, command: Command) => finish(() => action(name, command.optsWithGlobals() as O));
}

/** A number is an exit code; whatever is thrown is explained, and has one too. */
export async function finish(action: () => Promise<unknown>): Promise<void> {
  try {
    const code = await action();
    if (typeof code === 'number') process.exitCode = code;
  } catch (thrown) {
    const { complain } = await import('./complaint.ts');
    process.exitCode = complain(thrown);
  }
}
