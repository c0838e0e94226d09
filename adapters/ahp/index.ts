/** The Agent Harness Protocol: agents ask us before they act, and harnesses decide for agents that never heard of it. */

import { PROTOCOL } from '../../mappings/ahp.ts';
import { type Adapter, Fault } from '../../src/index.ts';
import { createUpstream } from './client.ts';
import { type AhpConfig, configSchema, settingsOf } from './config.ts';
import { ahpDoor } from './server.ts';

export const ahp: Adapter<AhpConfig> = {
  name: 'ahp',
  revision: PROTOCOL,
  configSchema,
  door: (config, deps) => ahpDoor(settingsOf(config), deps),
  policy(config, deps) {
    if (!config.upstream)
      throw new Fault('invalid_request', 'say where the harness is: upstream.url, .socket or .command');
    return createUpstream({ ...(config.hop && { hop: config.hop }), ...config.upstream }, deps);
  },
};
