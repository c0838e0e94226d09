/** The Agent Harness Protocol: agents ask the gateway before they act, and outside harnesses decide for agents that do not speak it. */

import { PROTOCOL } from '../../mappings/ahp.ts';
import type { Adapter } from '../../src/index.ts';
import { createUpstream } from './client/policy-engine.ts';
import { type AhpConfig, configSchema, settingsOf, type UpstreamConfig, UpstreamShape } from './config.ts';
import { ahpDoor } from './server/door.ts';

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
