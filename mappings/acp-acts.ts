/**
 * The effect that the arguments of a call show, independent of the name the agent gives it. Names are those observed in real
 * agents, compared without case, `_` and `-`. An agent's own claim may raise the effect and never lowers it below this.
 */
import type { Effect } from '../src/model/words.ts';

/** Members that hold a program, a command line or code to run. */
export const COMMAND_NAMES: readonly string[] = ['command', 'cmd', 'commandLine', 'script', 'shell', 'argv', 'code'];
/** Members that hold the content of a file to be written. */
export const CONTENT_NAMES: readonly string[] = [
  'content',
  'contents',
  'fileText',
  'newText',
  'newString',
  'newStr',
  'newContent',
  'insertText',
  'replacement',
  'patch',
  'diff',
  'edits',
];
/** Members that hold an address to be contacted. */
export const URL_NAMES: readonly string[] = ['url', 'uri', 'href', 'endpoint'];
export const PATH_NAMES: readonly string[] = [
  'path',
  'filePath',
  'absPath',
  'absolutePath',
  'targetFile',
  'notebookPath',
];
/** Members that hold the working directory of a command. */
export const DIRECTORY_NAMES: readonly string[] = ['cwd', 'workdir', 'workingDirectory', 'directory', 'dir'];

export const plainName = (name: string): string => name.replace(/[_-]/g, '').toLowerCase();

const BY_NAME: ReadonlyMap<string, Effect> = new Map(
  (
    [
      [COMMAND_NAMES, 'execute'],
      [CONTENT_NAMES, 'write'],
      [URL_NAMES, 'send'],
    ] as const
  ).flatMap(([names, effect]) => names.map((name) => [plainName(name), effect] as const)),
);

export function effectShownBy(name: string): Effect | undefined {
  return BY_NAME.get(plainName(name));
}

/** From harmless to unrestricted. An unknown word is `unknown`; only a command ranks higher. */
const ORDER: readonly Effect[] = ['none', 'read', 'write', 'send', 'publish', 'delete', 'pay', 'unknown', 'execute'];

export function raised(claimed: Effect, shown: Effect): Effect {
  return ORDER.indexOf(shown) > ORDER.indexOf(claimed) ? shown : claimed;
}

/** Variables that change which program runs or what it loads: their values are part of the decision. */
export const LOADING_VARIABLES =
  /^(PATH|LD_.*|DYLD_.*|NODE_OPTIONS|NODE_PATH|BASH_ENV|ENV|SHELL|IFS|PROMPT_COMMAND|PS4|PYTHON.*|PERL5.*|RUBY.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|GIT_.*|SSH_ASKPASS|EDITOR|VISUAL|PAGER|HOME|XDG_.*|npm_config_.*|.*_PROXY|.*_proxy)$/;
