/** Where editors and agents keep the commands they start, and what they call them. */
import { join } from 'node:path';
import { appData, homeOfUser, type System } from '../config-places.ts';

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
export interface Place extends System {
  readonly cwd: string;
}

export const here = (): Place => ({
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
