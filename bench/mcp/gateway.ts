/**
 * Our side, as it is run for real: the built gateway with rules, durable log, receipts and tokens. Prints its port and its
 * token; `SIGTERM` ends it in order. What is measured is what `npm run build` made: the way tests are run makes every
 * function carry its name, which costs more than some of them do.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { readConfig as ReadConfig } from '../../src/config.ts';
import type { startGateway as StartGateway } from '../../src/gateway.ts';

const built = new URL('../../dist/src/', import.meta.url);
if (!existsSync(new URL('gateway.js', built))) throw new Error('there is nothing built to measure; run: npm run build');
const load = (file: string) => import(new URL(file, built).href);
const { startGateway } = (await load('gateway.js')) as { startGateway: typeof StartGateway };
const { readConfig } = (await load('config.js')) as { readConfig: typeof ReadConfig };

const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
const file = join(dir, 'tollbridge.yaml');
const upstreams = JSON.parse(process.argv.at(-1) as string) as Record<string, object>;
const tools = Object.fromEntries(Object.entries(upstreams).map(([name, mcp]) => [name, { mcp }]));
const rules = [{ id: 'tools', when: { kind: 'tool' }, then: 'allow' }];
await writeFile(file, JSON.stringify({ data: join(dir, 'data'), demo: false, tools, rules, autonomy: 'act_auto' }));
const config = await readConfig({ file, port: 0, env: {}, cwd: dir });
const gateway = await startGateway({ ...config, port: 0 });
process.once('SIGTERM', async () => {
  await gateway.close();
  await rm(dir, { recursive: true, force: true });
  process.exit(0);
});
console.log(`${new URL(gateway.url).port} ${gateway.token}`);
