/** What a program we start finds around it: the few variables every program needs, those named, and secrets by name. */
import type { BackendDeps, BackendSettings } from './config.ts';

const USUAL = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TERM',
  'TMPDIR',
  'TZ',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'XDG_CACHE_HOME',
  'XDG_STATE_HOME',
];

/** Ours may hold keys that are nobody's business: what is not named is not handed on. */
export function plainEnvironment(inherit: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    [...USUAL, ...inherit].flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

export async function environmentOf(
  { env, inherit }: Pick<BackendSettings, 'env' | 'inherit'>,
  deps: Pick<BackendDeps, 'secret'>,
): Promise<Record<string, string>> {
  const secrets = await Promise.all(Object.entries(env).map(async ([name, from]) => [name, await deps.secret(from)]));
  return { ...plainEnvironment(inherit), ...Object.fromEntries(secrets) };
}
