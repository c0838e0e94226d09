/**
 * The optional suites with programs of others: `npm run interop -- acp`. They are large and installed apart, in `interop`.
 * One JSON line per case on standard output; exit 1 when one of them is not as it should be.
 */
import { acp } from './acp.ts';

const SUITES = { acp } as const;
const wanted = process.argv.slice(2);
const names = wanted.length > 0 ? wanted : Object.keys(SUITES);
for (const name of names) {
  const suite = SUITES[name as keyof typeof SUITES];
  if (!suite) {
    process.stderr.write(`there is no suite called ${name}; there are: ${Object.keys(SUITES).join(', ')}\n`);
    process.exit(2);
  }
  const told = await suite((line) => process.stdout.write(`${line}\n`));
  if (told.some(({ ok }) => !ok)) process.exitCode = 1;
}
