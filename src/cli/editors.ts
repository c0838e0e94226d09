/**
 * Where editors and agents keep the commands they start, and how such a command is put behind the bridge and taken out again. Pure
 * but for the names of places: text in, text out, comments and layout kept.
 */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { applyEdits, modify, type ParseError, parse, printParseErrorCode } from 'jsonc-parser';
import { Fault } from '../model/faults.ts';

export interface Editor {
  readonly name: string;
  /** What people call it. */
  readonly title: string;
  /** What is spoken with what it starts. */
  readonly speaks: 'acp' | 'mcp';
  /** The member that holds what it starts, by name. */
  readonly member: string;
  /** Members every new entry needs beside the command. */
  readonly entry?: Readonly<Record<string, unknown>>;
  settings(place: Place): string;
  /** What has to be done before the change is seen. */
  readonly next: string;
}
export interface Place {
  readonly home: string;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
}

export const here = (): Place => ({
  home: homedir(),
  cwd: process.cwd(),
  platform: process.platform,
  env: process.env,
});

/** Where programs keep what is theirs: one directory per system. */
function appData({ home, platform, env }: Place, ...rest: readonly string[]): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', ...rest);
  if (platform === 'win32') return join(env.APPDATA ?? join(home, 'AppData', 'Roaming'), ...rest);
  return join(env.XDG_CONFIG_HOME ?? join(home, '.config'), ...rest);
}

export const EDITORS: readonly Editor[] = [
  {
    name: 'zed',
    title: 'Zed',
    speaks: 'acp',
    member: 'agent_servers',
    entry: { type: 'custom' },
    settings: (place) =>
      place.platform === 'win32'
        ? appData(place, 'Zed', 'settings.json')
        : join(place.env.XDG_CONFIG_HOME ?? join(place.home, '.config'), 'zed', 'settings.json'),
    next: 'open a new agent thread in Zed',
  },
  {
    name: 'jetbrains',
    title: 'JetBrains IDEs',
    speaks: 'acp',
    member: 'agent_servers',
    settings: ({ home }) => join(home, '.jetbrains', 'acp.json'),
    next: 'open a new chat with the agent in AI Chat',
  },
  {
    name: 'vscode',
    title: 'VS Code with an ACP client extension',
    speaks: 'acp',
    member: 'acp.agents',
    settings: (place) => appData(place, 'Code', 'User', 'settings.json'),
    next: 'connect to the agent again in VS Code',
  },
  {
    name: 'claude-desktop',
    title: 'Claude Desktop',
    speaks: 'mcp',
    member: 'mcpServers',
    settings: (place) => appData(place, 'Claude', 'claude_desktop_config.json'),
    next: 'restart Claude Desktop',
  },
  {
    name: 'claude-code',
    title: 'Claude Code, for this directory',
    speaks: 'mcp',
    member: 'mcpServers',
    settings: ({ cwd }) => join(cwd, '.mcp.json'),
    next: 'start Claude Code again in this directory',
  },
  {
    name: 'cursor',
    title: 'Cursor',
    speaks: 'mcp',
    member: 'mcpServers',
    settings: ({ home }) => join(home, '.cursor', 'mcp.json'),
    next: 'reload the window in Cursor',
  },
];

export interface Entry {
  readonly command: string;
  readonly args: readonly string[];
}
export interface Change {
  readonly entry: string;
  readonly before: readonly string[] | undefined;
  readonly after: readonly string[];
}
export interface Edit {
  readonly text: string;
  readonly changes: readonly Change[];
  /** Entries that were left as they are, and why. */
  readonly left: readonly { readonly entry: string; readonly why: string }[];
}

const LAYOUT = { formattingOptions: { insertSpaces: true, tabSize: 2, eol: '\n' } };

/** Puts every command of this editor behind the bridge. `ours` is how the bridge itself is started. */
export function wrap(text: string, editor: Editor, ours: readonly string[]): Edit {
  return editEach(text, editor, ({ command, args }) => {
    if (isWrapped({ command, args }, editor)) return 'it already goes through tollbridge';
    const [first = '', ...rest] = [...ours, editor.speaks, '--', command, ...args];
    return { command: first, args: rest };
  });
}

/** Takes every command out again, as it was before. */
export function unwrap(text: string, editor: Editor): Edit {
  return editEach(text, editor, ({ command, args }) => {
    if (!isWrapped({ command, args }, editor)) return 'it does not go through tollbridge';
    const [inner = '', ...rest] = args.slice(args.indexOf('--') + 1);
    return { command: inner, args: rest };
  });
}

/** One more entry: this command, behind the bridge. */
export function add(
  text: string,
  editor: Editor,
  name: string,
  command: readonly string[],
  ours: readonly string[],
): Edit {
  const settings = read(text);
  if (settings[editor.member]?.[name]) {
    throw new Fault('conflict', `${editor.title} already has an entry ${name}; give this one another name with --name`);
  }
  const [first = '', ...args] = [...ours, editor.speaks, '--', ...command];
  const value = { ...editor.entry, command: first, args };
  return {
    text: applyEdits(text || '{}', modify(text || '{}', [editor.member, name], value, LAYOUT)),
    changes: [{ entry: name, before: undefined, after: [first, ...args] }],
    left: [],
  };
}

function editEach(text: string, editor: Editor, change: (entry: Entry) => Entry | string): Edit {
  const entries = Object.entries(read(text)[editor.member] ?? {});
  let edited = text;
  const changes: Change[] = [];
  const left: { entry: string; why: string }[] = [];
  for (const [entry, value] of entries) {
    const { command, args = [] } = (value ?? {}) as Partial<Entry>;
    if (typeof command !== 'string') {
      left.push({ entry, why: 'it starts no command' });
      continue;
    }
    const next = change({ command, args });
    if (typeof next === 'string') {
      left.push({ entry, why: next });
      continue;
    }
    for (const [member, to] of [
      ['command', next.command],
      ['args', next.args],
    ] as const) {
      edited = applyEdits(edited, modify(edited, [editor.member, entry, member], to, LAYOUT));
    }
    changes.push({ entry, before: [command, ...args], after: [next.command, ...next.args] });
  }
  return { text: edited, changes, left };
}

/** `… acp -- command`: however the bridge was started, this is what it was told. */
function isWrapped({ command, args }: Entry, { speaks }: Editor): boolean {
  const at = args.indexOf('--');
  return at > 0 && args[at - 1] === speaks && [command, ...args.slice(0, at)].some((word) => /tollbridge/.test(word));
}

function read(text: string): Record<string, Record<string, unknown> | undefined> {
  const errors: ParseError[] = [];
  const value: unknown = text.trim() === '' ? {} : parse(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error) {
    const line = text.slice(0, error.offset).split('\n').length;
    throw new Fault(
      'invalid_request',
      `line ${line} cannot be read (${printParseErrorCode(error.error)}); mend it first`,
    );
  }
  if (typeof value !== 'object' || value === null) throw new Fault('invalid_request', 'the settings are not an object');
  return value as Record<string, Record<string, unknown> | undefined>;
}
