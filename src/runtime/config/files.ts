/**
 * Which file is the configuration: the one named on the command line, the one a variable names, or the user's own.
 * Never one that merely lies in the directory a command is started in.
 */
import { isAbsolute, join, resolve } from 'node:path';
import { Fault } from '../../model/faults.ts';
import { own } from '../../model/values/own.ts';
import { readText } from '../../policy/rules/read-text.ts';
import type { ConfigRequest } from './config.ts';
import { requireOwn } from './file-owner.ts';
import { CONFIG_NAME, homeOfUser } from './user-paths.ts';

export interface ConfigText {
  /** Paths in it are relative to its directory. */
  readonly file: string;
  /** Undefined when there is no such file, and none was named. */
  readonly text: string | undefined;
}

export async function ownFile({ file, user, env, cwd }: ConfigRequest): Promise<ConfigText> {
  const named = file ? resolve(cwd, file) : variable(env, 'TOLLBRIDGE_CONFIG');
  if (named) return { file: named, text: await read(named) };
  if (!user) return { file: join(homeOfUser(), CONFIG_NAME), text: undefined };
  const text = await read(user.file, true);
  if (text !== undefined) await requireOwn(user.file);
  return { file: user.file, text };
}

/** The data directory, when a variable names one. */
export function dataVariable(env: NodeJS.ProcessEnv): string | undefined {
  return variable(env, 'TOLLBRIDGE_DATA');
}

/**
 * A variable is set once and holds in every directory: a relative path in it would mean another file in each of them.
 */
function variable(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const path = own(env, name);
  if (!path) return undefined;
  if (isAbsolute(path)) return path;
  if (path.startsWith('~/')) return join(homeOfUser(), path.slice(2));
  throw new Fault('invalid_request', `${name} is ${path}, which is not an absolute path`, {
    details: { fix: `write it from the root, or give ${name === 'TOLLBRIDGE_DATA' ? '--data' : '--config'} instead` },
  });
}

async function read(file: string, mayBeAbsent = false): Promise<string | undefined> {
  return await readText(file).catch((cause: NodeJS.ErrnoException) => {
    if (cause instanceof Fault) throw cause;
    if (mayBeAbsent && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR')) return undefined;
    throw new Fault(
      'invalid_request',
      cause.code === 'ENOENT'
        ? `cannot read ${file}: there is no such file; name one that is there, or leave --config and TOLLBRIDGE_CONFIG out`
        : `cannot read ${file}: ${cause.code}`,
    );
  });
}
