/** The configuration of a directory that a test wrote, named as a person would name it with --config. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, type ConfigRequest, readConfig } from '../../../src/runtime/config/config.ts';

export function configIn(dir: string, more: Partial<ConfigRequest> = {}): Promise<Config> {
  const file = join(dir, 'tollbridge.yaml');
  return readConfig({ env: {}, cwd: dir, ...(existsSync(file) && { file }), ...more });
}
