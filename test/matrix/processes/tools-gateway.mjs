/**
 * A gateway whose agents are the demo's and whose tools are not: `serve` has both or none. It is put together as docs/add-a-protocol.md
 * says, and tells where it listens as `serve --json` does; with `acp` it serves an editor instead, as `acp-agent` does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createDemoAgent } from '../../../dist/src/demo/agent.js';
import { createHandOver } from '../../../dist/src/demo/hand-over.js';
import { part, Type } from '../../../dist/src/index.js';
import { adapters, readConfig, startGateway } from '../../../dist/src/runtime/gateway.js';

const [, , file, data, door] = process.argv;
let gateway;
const pause = (ms, signal) => sleep(ms, undefined, { signal });
const handOver = createHandOver(() => gateway.core.bridge);
const nobody = Type.Object({}, { additionalProperties: false });
const teller = {
  name: 'teller',
  revision: '1',
  parts: { backend: part(nobody, (_, { name }) => createDemoAgent({ pause, name, handOver })) },
};
const config = await readConfig({ file, data, port: 0, env: process.env, cwd: process.cwd() });
if (door === 'acp') {
  const doors = Object.fromEntries(adapters.filter(({ parts }) => parts.door).map(({ name }) => [name, false]));
  const options = { adapters: [...adapters, teller], recoversOrphans: false, listens: false };
  gateway = await startGateway({ ...config, doors }, options);
  const acp = adapters
    .find(({ name }) => name === 'acp')
    .parts.door.open(config.doors.acp, { ...gateway.deps, name: 'acp' });
  const actor = { id: 'local', kind: 'person', scopes: ['*'], door: 'acp', interactive: true };
  const { stdin: input, stdout: output } = process;
  await acp.serve(gateway.core.bridge, { actor, input, output, signal: new AbortController().signal });
  await gateway.close();
  process.exit(0);
}
gateway = await startGateway(config, { adapters: [...adapters, teller] });
console.log(JSON.stringify({ object: 'gateway', url: gateway.url, token: gateway.token }));
process.once('SIGTERM', async () => {
  await gateway.close();
  process.exit(0);
});
