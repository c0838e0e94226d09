/** One of the compared harnesses as a program of its own: `ahp-child.ts <side> <dir>`, spoken to over its input and output. */
import { LOCAL_AGENT } from '../../adapters/ahp/server/door.ts';
import { serveLines } from '../../adapters/ahp/server/streams.ts';
import { openSide, QUIET, type Side } from './ahp-sides.ts';

const [side, dir] = process.argv.slice(2) as [Side, string];
const harness = await openSide(side, dir);
const streams = { input: process.stdin, output: process.stdout };
await serveLines(harness, streams, { actor: LOCAL_AGENT, log: QUIET, limit: 4 << 20 });
await harness.close();
