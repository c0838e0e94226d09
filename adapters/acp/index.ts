/** The Agent Client Protocol: a door for editors, a backend for agents, and a relay between an editor and its agent. */
import { PROTOCOL } from '../../mappings/acp.ts';
import { type Adapter, asText, part } from '../../src/index.ts';
import { acpBackend } from './client/backend.ts';
import { backendSchema, configSchema, settingsOf } from './config.ts';
import { acpRelay } from './relay/relay.ts';
import { relaySchema } from './relay/settings.ts';
import { acpDoor } from './server/door.ts';

export const acp = {
  name: 'acp',
  revision: asText(PROTOCOL),
  parts: {
    door: part(configSchema, (config, context) => acpDoor(settingsOf(config), context)),
    backend: part(backendSchema, (config, context) => acpBackend(context.name, config, context)),
    relay: part(relaySchema, (config, context) => acpRelay(config, context)),
  },
} satisfies Adapter;

export type { RelayConfig } from './relay/settings.ts';
export { THOUGHTS } from './server/render-thoughts.ts';
