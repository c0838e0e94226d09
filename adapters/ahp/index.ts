/** The Agent Harness Protocol: agents ask us before they act, and harnesses decide for agents that never heard of it. */

import { PROTOCOL } from '../../mappings/ahp.ts';
import type { Adapter } from '../../src/index.ts';
import { createUpstream } from './client.ts';
import { type AhpConfig, configSchema, settingsOf, type UpstreamConfig, UpstreamShape } from './config.ts';
import { ahpDoor } from './server.ts';

export const ahp: Adapter<AhpConfig> = {
  name: 'ahp',
  revision: PROTOCOL,
  configSchema,
  door: (config, deps) => ahpDoor(settingsOf(config), deps),
  policy: {
    configSchema: UpstreamShape,
    open: (name, config: UpstreamConfig, deps) => createUpstream({ name, ...config }, deps),
  },
};
