/** The Agents Protocol: the canonical protocol itself, spoken over HTTP. */
import { type Adapter, PROTOCOL_VERSION } from '../../src/index.ts';
import { configSchema, type HarnConfig, settingsOf } from './config.ts';
import { createFileTools } from './files.ts';
import { harnDoor } from './server.ts';

export const harn: Adapter<HarnConfig> = {
  name: 'harn',
  revision: PROTOCOL_VERSION,
  configSchema,
  door: (config, deps) => harnDoor(settingsOf(config), deps),
  tools: (config) => createFileTools(config.files ?? []),
};
