/** Agent Harness v1: the runs API, for services that start runs here and for remote harnesses as agents. */
import { REVISION } from '../../mappings/runs.ts';
import type { Adapter } from '../../src/index.ts';
import { runsBackend } from './client/backend.ts';
import { backendSchema, type RunsBackendConfig } from './client/config.ts';
import { configSchema, type RunsConfig, settingsOf } from './config.ts';
import { runsDoor } from './server/door.ts';

export const runs: Adapter<RunsConfig> = {
  name: 'runs',
  revision: REVISION,
  configSchema,
  door: (config, deps) => runsDoor(settingsOf(config), deps),
  backend: {
    configSchema: backendSchema,
    open: (name, config: RunsBackendConfig, deps) => runsBackend(name, config, deps),
  },
};
