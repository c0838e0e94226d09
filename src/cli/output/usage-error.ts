/** Usage errors: the parser's message in the format of all other errors, with the help to read. */
import type { Command, CommanderError } from 'commander';
import { printError, trouble } from './error-output.ts';
import { EXIT } from './exit-codes.ts';

export function usageError({ code, message }: CommanderError, program: Command, words: readonly string[]): number {
  // A command with subcommands, called by itself, has already shown its help.
  if (code === 'commander.help') return EXIT.usageError;
  const path = pathIn(program, words);
  const [said = '', guess = ''] = message.replace(/^error: /, '').split('\n');
  const name = quotedIn(said);
  const better = /Did you mean (?:one of )?(.*)\?/.exec(guess)?.[1];
  const see = `"${['tollbridge', ...path, '--help'].join(' ')}" says what there is`;
  return printError(
    trouble('invalid_request', inOurWords(code, said, name, path), better ? `did you mean ${better}? ${see}` : see),
  );
}

/** The commands among the typed words, from the root. */
function pathIn(program: Command, words: readonly string[]): readonly string[] {
  const path: string[] = [];
  let command = program;
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word);
    if (!next) continue;
    command = next;
    path.push(word);
  }
  return path;
}

function inOurWords(code: string, said: string, name: string, path: readonly string[]): string {
  const ofCommand = path.length > 0 ? ` of ${path.join(' ')}` : '';
  switch (code) {
    case 'commander.unknownCommand':
      return `there is no command ${[...path, name].join(' ')}`;
    case 'commander.unknownOption':
      return `there is no option ${name}${ofCommand}`;
    case 'commander.missingArgument':
      return `${path.join(' ')} needs to know: <${name}>`;
    case 'commander.optionMissingArgument':
      return `${name} needs a value after it`;
    case 'commander.excessArguments':
      return `${path.join(' ')} takes fewer words than were given`;
    case 'commander.invalidArgument':
      return `${path.join(' ')} does not know ${name}; it knows: ${/choices are (.*?)\.?$/.exec(said)?.[1] ?? 'others'}`;
    default:
      return said;
  }
}

function quotedIn(text: string): string {
  return /'([^']*)'/.exec(text)?.[1] ?? '';
}
