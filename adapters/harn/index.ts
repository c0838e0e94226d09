/** The Agents Protocol: the canonical protocol itself, spoken over HTTP. */
import { type Adapter, Fault, PROTOCOL_VERSION } from '../../src/index.ts';
import { harnBackend } from './client.ts';
import { configSchema, type HarnConfig, settingsOf } from './config.ts';
import { createFileTools } from './files.ts';
import { harnDoor } from './server.ts';

export const harn: Adapter<HarnConfig> = {
  name: 'harn',
  revision: PROTOCOL_VERSION,
  configSchema,
  door: (config, deps) => harnDoor(settingsOf(config), deps),
  backend(config, deps) {
    if (!config.remote) throw new Fault('invalid_request', 'say where the remote is: remote.url');
    return harnBackend(config.remote, deps);
  },
  tools: (config) => createFileTools(config.files ?? []),
};
