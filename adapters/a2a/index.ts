/** Agent2Agent: the agents of this gateway for peers to call, and peers as agents of this gateway. */
import { type Adapter, part } from '../../src/index.ts';
import { a2aBackend } from './client/backend.ts';
import { backendSchema } from './client/config.ts';
import { configSchema, settingsOf } from './config.ts';
import { a2aDoor } from './server/door.ts';

export const a2a = {
  name: 'a2a',
  revision: '1.0',
  parts: {
    door: part(configSchema, (config, context) => a2aDoor(settingsOf(config), context)),
    backend: part(backendSchema, (config, context) => a2aBackend(context.name, config, context)),
  },
} satisfies Adapter;
