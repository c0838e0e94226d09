/** The Agent Client Protocol: a door for editors, a backend for agents, and a relay between an editor and its agent. */
import { NOT_UPDATED, PROTOCOL } from '../../mappings/acp.ts';
import { type Adapter, asText, type CoreEvent, part } from '../../src/index.ts';
import { acpBackend } from './client/backend.ts';
import { backendSchema, configSchema, settingsOf } from './config.ts';
import { acpRelay } from './relay/relay.ts';
import { relaySchema } from './relay/settings.ts';
import { profileOf } from './server/client-profile.ts';
import { acpDoor } from './server/door.ts';
import { createEventRenderer } from './server/render-events.ts';

export const acp = {
  name: 'acp',
  revision: asText(PROTOCOL),
  view() {
    const client = profileOf({}, { harn: 'off' });
    // Content of files is not fetched: an artifact is named, as an editor without the file would see it.
    const { render } = createEventRenderer({ client, own: () => false, artifact: async () => undefined });
    return { frames: (event: CoreEvent) => render(event), leftOut: NOT_UPDATED };
  },
  parts: {
    door: part(configSchema, (config, context) => acpDoor(settingsOf(config), context)),
    backend: part(backendSchema, (config, context) => acpBackend(context.name, config, context)),
    relay: part(relaySchema, (config, context) => acpRelay(config, context)),
  },
} satisfies Adapter;

export type { RelayConfig } from './relay/settings.ts';
export { THOUGHTS } from './server/render-thoughts.ts';
