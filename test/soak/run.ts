/**
 * `npm run soak`: an hour of mixed traffic, or `--minutes 3`. Prints a line for each sample and a table at the end. Exit 1: memory,
 * descriptors or children rose, a use failed, or the log is not valid.
 */
import { parseArgs } from 'node:util';
import { lineOf, soak } from './soak.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, memory: { type: 'string' }, callers: { type: 'string' } },
});
const minutes = Number(values.minutes);
// In a few minutes the heap has not found its size yet.
const memory = values.memory === undefined ? (minutes >= 30 ? 0.05 : 0.25) : Number(values.memory) / 100;
const callers = Number(values.callers ?? 8);
const { samples, uses, violations } = await soak({
  minutes,
  memory,
  callers,
  progress: (line) => process.stderr.write(`${line}\n`),
});
console.table(Object.fromEntries([...uses].map(([door, count]) => [door, { uses: count }])));
const last = samples.at(-1);
if (last) console.log(lineOf(last));
for (const violation of violations) console.log(`violated: ${violation}`);
if (violations.length === 0) console.log('level, and everything it wrote is valid');
process.exitCode = violations.length === 0 ? 0 : 1;
