/** Agent2Agent: agents of this house for peers to call. */
import type { Adapter } from '../../src/index.ts';
import { type A2aConfig, configSchema, settingsOf } from './config.ts';
import { a2aDoor } from './server.ts';

export const a2a: Adapter<A2aConfig> = {
  name: 'a2a',
  revision: '1.0',
  configSchema,
  door: (config, deps) => a2aDoor(settingsOf(config), deps),
};
