/** Agent2Agent: the agents of this gateway for peers to call, and peers as agents of this gateway. */
import type { Adapter } from '../../src/index.ts';
import { a2aBackend } from './client/backend.ts';
import { type A2aBackendConfig, backendSchema } from './client/config.ts';
import { type A2aConfig, configSchema, settingsOf } from './config.ts';
import { a2aDoor } from './server/door.ts';

export const a2a: Adapter<A2aConfig> = {
  name: 'a2a',
  revision: '1.0',
  configSchema,
  door: (config, deps) => a2aDoor(settingsOf(config), deps),
  backend: {
    configSchema: backendSchema,
    open: (name, config: A2aBackendConfig, deps) => a2aBackend(name, config, deps),
  },
};
