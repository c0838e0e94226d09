/**
 * `tollbridge completion bash|zsh|fish`: scripts generated from the command tree itself, so that they cannot differ
 * from it.
 */

import type { Command } from 'commander';
import { own } from '../../../model/values/own.ts';
import { trouble } from '../../output/error-output.ts';

/** One position in the tree, and the words that may follow there. */
interface Position {
  /** The words that lead here, each with a space before it: `''`, `' policy'`, `' policy show'`. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly says: string }[];
  readonly options: readonly Choice[];
  /** Allowed values of its first argument, where they are fixed. */
  readonly choices: readonly string[];
}
interface Choice {
  readonly short?: string;
  readonly long: string;
  readonly says: string;
  /** The next word is its value, whose completion is left to the shell. */
  readonly takesValue: boolean;
}

const SHELLS: Readonly<Record<string, (positions: readonly Position[]) => string>> = { bash, zsh, fish };

export async function completion(shell: string, program: Command): Promise<void> {
  const script = own(SHELLS, shell);
  if (!script) {
    throw trouble('invalid_request', `there is no completion for ${shell}`, 'use bash, zsh or fish');
  }
  process.stdout.write(script(positionsIn(program, '')));
}

function positionsIn(command: Command, path: string): readonly Position[] {
  const commands = command.commands.filter((each) => !(each as { _hidden?: boolean })._hidden);
  const globals = path === '' ? [] : command.parent ? rootOf(command).options : [];
  const options = [...command.options, ...globals].flatMap((option): Choice[] =>
    option.hidden || !option.long
      ? []
      : [
          {
            long: option.long,
            ...(option.short && { short: option.short }),
            says: option.description,
            takesValue: option.required || option.optional,
          },
        ],
  );
  const help: Choice = { short: '-h', long: '--help', says: 'explain it', takesValue: false };
  return [
    {
      path,
      commands: commands.map((each) => ({ name: each.name(), says: each.description() })),
      choices: command.registeredArguments[0]?.argChoices ?? [],
      options: [...new Map([...options, help].map((each) => [each.long, each])).values()],
    },
    ...commands.flatMap((each) => positionsIn(each, `${path} ${each.name()}`)),
  ];
}

function rootOf(command: Command): Command {
  return command.parent ? rootOf(command.parent) : command;
}

const deeper = (positions: readonly Position[]) => positions.filter(({ path }) => path !== '').map(({ path }) => path);
const wordsAt = ({ commands, choices, options }: Position) => [
  ...commands.map(({ name }) => name),
  ...choices,
  ...options.map(({ long }) => long),
];
/** Options that take the next word as their value. */
const valued = (positions: readonly Position[]) => [
  ...new Set(
    positions.flatMap(({ options }) =>
      options.filter(({ takesValue }) => takesValue).flatMap(({ long, short }) => (short ? [long, short] : [long])),
    ),
  ),
];

function bash(positions: readonly Position[]): string {
  const cases = positions.map((position) => `    '${position.path}') words='${wordsAt(position).join(' ')}' ;;`);
  return `# Completion of tollbridge for bash.
_tollbridge() {
  local at='' word words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [ "$word" = -- ]; then COMPREPLY=(); return; fi # what follows is another command's
    case "$at $word" in
      ${deeper(positions)
        .map((path) => `'${path}'`)
        .join(' | ')}) at="$at $word" ;;
    esac
  done
  COMPREPLY=()
  case "\${COMP_WORDS[COMP_CWORD - 1]}" in
    ${valued(positions).join(' | ')}) return ;;
  esac
  case "$at" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -o bashdefault -F _tollbridge tollbridge
`;
}

function zsh(positions: readonly Position[]): string {
  const entry = (name: string, says: string) => `'${quote(`${name}:${says}`)}'`;
  const cases = positions.map(
    ({ path, commands, choices, options }) =>
      `    '${path}') choices=(${[
        ...commands.map(({ name, says }) => entry(name, says)),
        ...choices.map((word) => `'${word}'`),
      ].join(' ')}); options=(${options.map(({ long, says }) => entry(long, says)).join(' ')}) ;;`,
  );
  return `#compdef tollbridge
# Completion of tollbridge for zsh.
_tollbridge() {
  local at='' word
  local -a typed choices options
  typed=("\${(@)words[2,CURRENT-1]}")
  for word in $typed; do
    if [ "$word" = -- ]; then _files; return; fi # what follows is another command's
    case "$at $word" in
      ${deeper(positions)
        .map((path) => `'${path}'`)
        .join(' | ')}) at="$at $word" ;;
    esac
  done
  case "$typed[-1]" in
    ${valued(positions).join(' | ')}) _files; return ;;
  esac
  case "$at" in
${cases.join('\n')}
  esac
  # Commands first; options where the word begins with a dash, or where there is nothing else.
  if [[ "$words[CURRENT]" == -* || $#choices -eq 0 ]]; then choices=($options); fi
  _describe tollbridge choices || _files
}
if [ "$funcstack[1]" = _tollbridge ]; then
  _tollbridge "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _tollbridge tollbridge
fi
`;
}

function fish(positions: readonly Position[]): string {
  const lines = positions.flatMap(({ path, commands, choices, options }) => {
    const here = `complete -c tollbridge -n "__tollbridge_at '${path}'"`;
    return [
      ...commands.map(({ name, says }) => `${here} -f -a ${name} -d '${quote(says)}'`),
      ...(choices.length > 0 ? [`${here} -f -a '${choices.join(' ')}'`] : []),
      ...options.map(({ long, short, says, takesValue }) =>
        [
          here,
          short ? `-s ${short.slice(1)}` : '',
          `-l ${long.slice(2)}`,
          takesValue ? '-r' : '',
          `-d '${quote(says)}'`,
        ]
          .filter(Boolean)
          .join(' '),
      ),
    ];
  });
  return `# Completion of tollbridge for fish.
function __tollbridge_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        if test "$word" = -- # what follows is another command's
            return 1
        end
        switch "$at $word"
            case ${deeper(positions)
              .map((path) => `'${path}'`)
              .join(' ')}
                set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
${lines.join('\n')}
`;
}

/** For single quotes, in which only the quote itself is special. */
function quote(text: string): string {
  return text.replaceAll("'", '’').replaceAll('\\', '');
}
