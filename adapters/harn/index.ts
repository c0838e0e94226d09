/** The Agents Protocol: the canonical protocol itself, spoken over HTTP. */
import type { Adapter } from '../../src/index.ts';
import { harnBackend } from './client/backend.ts';
import { backendSchema, type HarnBackendConfig } from './client/config.ts';
import { configSchema, type HarnConfig, settingsOf } from './config.ts';
import { VERSIONS } from './revisions/revisions.ts';
import { harnDoor } from './server/door.ts';
import { createFileTools } from './server/workspace-files.ts';

export const harn: Adapter<HarnConfig> = {
  name: 'harn',
  revision: VERSIONS.join(', '),
  configSchema,
  door: (config, deps) => harnDoor(settingsOf(config), deps, [createFileTools(config.files ?? [])]),
  backend: {
    configSchema: backendSchema,
    open: (name, config: HarnBackendConfig, deps) => harnBackend({ name, ...config }, deps),
  },
};
