/**
 * A gateway that says how long its event loop was held at most since it was last asked: `stalled` on standard input is answered
 * with milliseconds on standard output, by the clock and on a core; `rules` puts as many other rules in their place. `SIGTERM` ends it in order.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { readConfig } from '../../src/runtime/config/config.ts';
import { startGateway } from '../../src/runtime/gateway.ts';

const RESOLUTION_MS = 2;
const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
const file = join(dir, 'tollbridge.yaml');
const [count = '1', ...command] = process.argv.slice(2);
const configure = async (generation: number) => {
  const rules = rulesOf(Number(count), generation);
  const config = { data: join(dir, 'data'), demo: false, tools: { box: { mcp: { command } } }, rules };
  await writeFile(file, JSON.stringify(config));
};
let generation = 1;
await configure(generation);
const gateway = await startGateway({ ...(await readConfig({ file, port: 0, env: {}, cwd: dir })), port: 0 });
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
let busiest = 0;
let before = onCpu();
setInterval(() => {
  const now = onCpu();
  busiest = Math.max(busiest, now - before);
  before = now;
}, RESOLUTION_MS);
createInterface({ input: process.stdin }).on('line', async (line) => {
  if (line === 'rules') {
    generation += 1;
    await configure(generation);
    console.log(generation);
    return;
  }
  console.log(`${(delay.max / 1e6 - RESOLUTION_MS).toFixed(1)} ${busiest.toFixed(1)}`);
  delay.reset();
  busiest = 0;
});
process.once('SIGTERM', async () => {
  await gateway.close();
  await rm(dir, { recursive: true, force: true });
  process.exit(0);
});
console.log(`${gateway.url} ${gateway.token}`);

/** Milliseconds that the main thread itself was on a core, which others on the machine do not lengthen; 0 where the system does not say. */
function onCpu(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return 0;
  }
}

/** One that allows, one that blocks the word of its generation, and as many more as wanted that all look at the call. */
function rulesOf(wanted: number, at: number): object[] {
  const kinds = [
    (n: number) => ({ when: { tool: ['back', `t${n}`, `a${n}*`] }, then: 'allow' }),
    (n: number) => ({
      when: { tool: 'back', arguments: { text: [`*never ${n}*`, `x${n}*y*z*`] } },
      then: 'block',
      say: 'no',
    }),
    (n: number) => ({ when: { path: [`*/d${n}/*`, `/etc/*${n}`] }, then: 'ask', say: 'who' }),
    (n: number) => ({ when: { command: [`rm *${n}*`, `* --force*${n}`] }, then: 'block', say: 'no' }),
  ];
  const more = Array.from({ length: Math.max(0, wanted - 2) }, (_, n) => ({
    id: `r${at}-${n}`,
    ...kinds[n % kinds.length]?.(n),
  }));
  return [
    { id: 'tools', when: { kind: 'tool' }, then: 'allow' },
    { id: 'word', when: { tool: 'back', arguments: { text: `generation ${at}` } }, then: 'block', say: 'seen' },
    ...more,
  ];
}
