/** The Agents Protocol: the canonical protocol itself, spoken over HTTP. */
import { type Adapter, PROTOCOL_VERSION } from '../../src/index.ts';
import { harnBackend } from './client.ts';
import { backendSchema, type HarnBackendConfig } from './client-config.ts';
import { configSchema, type HarnConfig, settingsOf } from './config.ts';
import { createFileTools } from './files.ts';
import { harnDoor } from './server.ts';

export const harn: Adapter<HarnConfig> = {
  name: 'harn',
  revision: PROTOCOL_VERSION,
  configSchema,
  door: (config, deps) => harnDoor(settingsOf(config), deps),
  ownTools: (config) => createFileTools(config.files ?? []),
  backend: {
    configSchema: backendSchema,
    open: (name, config: HarnBackendConfig, deps) => harnBackend({ name, ...config }, deps),
  },
};
