/** The environment of a configured agent: the usual few variables, those named in `inherit`, and secrets by name. */
import { minimalEnvironment } from '../../../src/transport/process/environment.ts';
import type { BackendDeps, BackendSettings } from '../config.ts';

export async function environmentOf(
  { env, inherit }: Pick<BackendSettings, 'env' | 'inherit'>,
  deps: Pick<BackendDeps, 'secret'>,
): Promise<Record<string, string>> {
  const secrets = await Promise.all(Object.entries(env).map(async ([name, from]) => [name, await deps.secret(from)]));
  return { ...minimalEnvironment(inherit), ...Object.fromEntries(secrets) };
}
