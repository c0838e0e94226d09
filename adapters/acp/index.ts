/** The Agent Client Protocol: a door for editors, a backend for agents. */

import { PROTOCOL } from '../../mappings/acp.ts';
import type { Adapter } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { acpBackend } from './client/backend.ts';
import { type AcpBackendConfig, type AcpConfig, backendSchema, configSchema, settingsOf } from './config.ts';
import { relaySchema } from './relay/settings.ts';
import { acpDoor } from './server/door.ts';

export const acp: Adapter<AcpConfig> = {
  name: 'acp',
  revision: asText(PROTOCOL),
  configSchema,
  door: (config, deps) => acpDoor(settingsOf(config), deps),
  backend: {
    configSchema: backendSchema,
    open: (name, config: AcpBackendConfig, deps) => acpBackend(name, config, deps),
  },
  relay: { configSchema: relaySchema },
};

export { serveAcp } from './server/stdio.ts';
