/**
 * A gateway that says how long its event loop was held at most since it was last asked: `stalled` on standard input is answered
 * with milliseconds on standard output. `SIGTERM` ends it in order.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { readConfig } from '../../src/config.ts';
import { startGateway } from '../../src/gateway.ts';

const RESOLUTION_MS = 2;
const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
const file = join(dir, 'tollbridge.yaml');
const rules = [{ id: 'tools', when: { kind: 'tool' }, then: 'allow' }];
const command = process.argv.slice(2);
await writeFile(
  file,
  JSON.stringify({ data: join(dir, 'data'), demo: false, tools: { box: { mcp: { command } } }, rules }),
);
const gateway = await startGateway({ ...(await readConfig({ file, port: 0, env: {}, cwd: dir })), port: 0 });
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
createInterface({ input: process.stdin }).on('line', () => {
  console.log((delay.max / 1e6 - RESOLUTION_MS).toFixed(1));
  delay.reset();
});
process.once('SIGTERM', async () => {
  await gateway.close();
  await rm(dir, { recursive: true, force: true });
  process.exit(0);
});
console.log(`${gateway.url} ${gateway.token}`);
