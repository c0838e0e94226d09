/** Editors and agents: where their settings are, and which member holds the commands they start. */
import { join } from 'node:path';
import { appData, homeOfUser, type System } from '../../runtime/config/user-paths.ts';

export interface Editor {
  readonly name: string;
  /** The product's name. */
  readonly title: string;
  /** The protocol of the commands it starts. */
  readonly speaks: 'acp' | 'mcp';
  /** The member that holds these commands, by name. */
  readonly member: string;
  /** Members every new entry needs beside the command. */
  readonly entry?: Readonly<Record<string, unknown>>;
  settings(location: EditorLocation): string;
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

export const EDITORS: readonly Editor[] = [
  {
    name: 'zed',
    title: 'Zed',
    speaks: 'acp',
    member: 'agent_servers',
    entry: { type: 'custom' },
    settings: (location) =>
      location.platform === 'win32'
        ? appData(location, 'Zed', 'settings.json')
        : join(location.env.XDG_CONFIG_HOME ?? join(location.home, '.config'), 'zed', 'settings.json'),
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
    settings: (location) => appData(location, 'Code', 'User', 'settings.json'),
    next: 'connect to the agent again in VS Code',
  },
  {
    name: 'claude-desktop',
    title: 'Claude Desktop',
    speaks: 'mcp',
    member: 'mcpServers',
    settings: (location) => appData(location, 'Claude', 'claude_desktop_config.json'),
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
