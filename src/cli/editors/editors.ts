/** Editors and clients: where their settings are, and which members hold the commands they start and the servers they reach. */
import { join } from 'node:path';
import { appData, homeOfUser, type System } from '../../runtime/config/user-paths.ts';

/** One list of commands in one settings file. */
export interface CommandList {
  readonly file: string;
  /** The member that holds the commands by name, from the root of the file; `*` stands for every member there is. */
  readonly path: readonly string[];
  /** The protocol of these commands. */
  readonly speaks: 'acp' | 'mcp';
  /** Members every new entry needs beside the command. */
  readonly entry?: Readonly<Record<string, unknown>>;
}
export interface Editor {
  readonly name: string;
  /** The product's name. */
  readonly title: string;
  /** Everywhere it keeps such commands. A new entry is added to the first list. */
  lists(location: EditorLocation): readonly [CommandList, ...CommandList[]];
  /** Where it also starts agents from, without naming them in a file. */
  readonly unlisted?: string;
  /** What the user has to do before the change takes effect. */
  readonly next: string;
}
export interface EditorLocation extends System {
  readonly cwd: string;
}

export const here = (): EditorLocation => ({
  home: homeOfUser(),
  cwd: process.cwd(),
  platform: process.platform,
  env: process.env,
});

const AGENTS: Pick<CommandList, 'path' | 'speaks'> = { path: ['agent_servers'], speaks: 'acp' };
const SERVERS: Pick<CommandList, 'path' | 'speaks'> = { path: ['mcpServers'], speaks: 'mcp' };

export const EDITORS: readonly Editor[] = [
  {
    name: 'zed',
    title: 'Zed',
    lists: (location) => [
      {
        ...AGENTS,
        entry: { type: 'custom' },
        file:
          location.platform === 'win32'
            ? appData(location, 'Zed', 'settings.json')
            : join(location.env.XDG_CONFIG_HOME ?? join(location.home, '.config'), 'zed', 'settings.json'),
      },
    ],
    next: 'open a new agent thread in Zed',
  },
  {
    name: 'jetbrains',
    title: 'JetBrains IDEs',
    lists: ({ home }) => [{ ...AGENTS, file: join(home, '.jetbrains', 'acp.json') }],
    unlisted: 'the ACP registry and those the IDE brings along',
    next: 'open a new chat with the agent in AI Chat',
  },
  {
    name: 'vscode',
    title: 'VS Code',
    lists(location) {
      const user = (file: string) => appData(location, 'Code', 'User', file);
      const folder = (file: string) => join(location.cwd, '.vscode', file);
      const servers = (file: string, ...path: readonly string[]) => ({ file, path, speaks: 'mcp' as const });
      return [
        // Extensions that are ACP clients keep their agents under one of these names.
        { file: user('settings.json'), path: ['acp.agents'], speaks: 'acp' },
        { file: folder('settings.json'), path: ['acp.agents'], speaks: 'acp' },
        { ...AGENTS, file: user('settings.json') },
        { ...AGENTS, file: folder('settings.json') },
        servers(user('mcp.json'), 'servers'),
        servers(folder('mcp.json'), 'servers'),
        // Before it had a file of its own, the list was a setting; such settings are still read.
        servers(user('settings.json'), 'mcp', 'servers'),
        servers(folder('settings.json'), 'mcp', 'servers'),
      ];
    },
    unlisted: 'an extension itself, such as the defaults of ACP Client,',
    next: 'connect to the agent, or start the server, again in VS Code',
  },
  {
    name: 'claude-desktop',
    title: 'Claude Desktop',
    lists: (location) => [{ ...SERVERS, file: appData(location, 'Claude', 'claude_desktop_config.json') }],
    next: 'restart Claude Desktop',
  },
  {
    name: 'claude-code',
    title: 'Claude Code',
    lists({ cwd, home, env }) {
      const own = join(env.CLAUDE_CONFIG_DIR || home, '.claude.json');
      return [
        // Its scopes project, user and local; the last is by directory.
        { ...SERVERS, file: join(cwd, '.mcp.json') },
        { ...SERVERS, file: own },
        { file: own, path: ['projects', '*', 'mcpServers'], speaks: 'mcp' },
      ];
    },
    next: 'start Claude Code again',
  },
  {
    name: 'cursor',
    title: 'Cursor',
    lists: ({ cwd, home }) => [
      { ...SERVERS, file: join(home, '.cursor', 'mcp.json') },
      { ...SERVERS, file: join(cwd, '.cursor', 'mcp.json') },
    ],
    next: 'reload the window in Cursor',
  },
];
