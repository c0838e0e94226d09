/**
 * Paths of the user's own files. Nothing here is ever taken from the working directory: a variable that is empty or
 * relative is treated as not set, because it would name another directory wherever a command is started.
 */
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';

export const CONFIG_NAME = 'tollbridge.yaml';

export interface UserPaths {
  /** The user's own configuration. */
  readonly file: string;
  /** The files of working directories the user trusts, as they were when the user saw them. */
  readonly trust: string;
}

export interface System {
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
}

/** The directory for application settings, per operating system. */
export function appData({ home, platform, env }: System, ...rest: readonly string[]): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', ...rest);
  if (platform === 'win32') return join(absolute(env.APPDATA) ?? join(home, 'AppData', 'Roaming'), ...rest);
  return join(absolute(env.XDG_CONFIG_HOME) ?? join(home, '.config'), ...rest);
}

/** The home directory of this user; the root of the file system for a user who has none. */
export function homeOfUser(): string {
  return absolute(said(homedir)) ?? absolute(said(() => userInfo().homedir)) ?? '/';
}

export function userPaths(env: NodeJS.ProcessEnv = process.env, platform = process.platform): UserPaths {
  const directory = appData({ home: homeOfUser(), platform, env }, 'tollbridge');
  return { file: join(directory, CONFIG_NAME), trust: join(directory, 'trust.json') };
}

function absolute(path: string | undefined): string | undefined {
  return path && isAbsolute(path) ? path : undefined;
}

/** Both ask the system, which throws for a user without an entry, as in some containers. */
function said(ask: () => string): string | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
