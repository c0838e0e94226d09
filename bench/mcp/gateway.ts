/**
 * Our side, as it is run for real: the gateway with rules, durable log, receipts and tokens. Prints its port, its token and the file
 * of its log; `SIGTERM` ends it in order.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/runtime/config/config.ts';
import { startGateway } from '../../src/runtime/gateway.ts';
import type { StoreOfOurs } from './side.ts';

const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
const file = join(dir, 'tollbridge.yaml');
const args = process.argv.slice(2).map((text) => JSON.parse(text));
const upstreams = args.at(-1) as Record<string, object>;
const { section, env = {} } = (args.length > 1 ? args[0] : {}) as StoreOfOurs;
const tools = Object.fromEntries(Object.entries(upstreams).map(([name, mcp]) => [name, { mcp }]));
const rules = [{ id: 'tools', when: { kind: 'tool' }, then: 'allow' }];
const limits = { children: 512 };
const settings = {
  ...(section && { store: section }),
  data: join(dir, 'data'),
  demo: false,
  tools,
  rules,
  limits,
  autonomy: 'act_auto',
};
await writeFile(file, JSON.stringify(settings));
const config = await readConfig({ file, port: 0, env, cwd: dir });
const gateway = await startGateway({ ...config, port: 0 });
process.once('SIGTERM', async () => {
  await gateway.close();
  await rm(dir, { recursive: true, force: true });
  process.exit(0);
});
console.log(`${new URL(gateway.url).port} ${gateway.token} ${join(dir, 'data', 'log.db')}`);
