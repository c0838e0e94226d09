/** The Agents Protocol: the canonical protocol itself, spoken over HTTP. */
import { type Adapter, type Deps, PROTOCOL_VERSION } from '../../src/index.ts';
import { harnBackend } from './client.ts';
import { backendSchema, type HarnBackendConfig } from './client-config.ts';
import { configSchema, type HarnConfig, settingsOf } from './config.ts';
import { createFileTools } from './files.ts';
import { createHosts, type Hosts } from './hosts.ts';
import { harnDoor } from './server.ts';

export const harn: Adapter<HarnConfig> = {
  name: 'harn',
  revision: PROTOCOL_VERSION,
  configSchema,
  door: (config, deps) => harnDoor(settingsOf(config), deps, hostsOf(config, deps)),
  ownTools: (config, deps) => [createFileTools(config.files ?? []), hostsOf(config, deps).backend],
  backend: {
    configSchema: backendSchema,
    open: (name, config: HarnBackendConfig, deps) => harnBackend({ name, ...config }, deps),
  },
};

/** Door and tools of one gateway meet in what they are given. */
const known = new WeakMap<Deps, Hosts>();

function hostsOf(config: HarnConfig, deps: Deps): Hosts {
  const hosts = known.get(deps) ?? createHosts({ ids: deps.ids, patienceMs: settingsOf(config).hostPatienceMs });
  known.set(deps, hosts);
  return hosts;
}
