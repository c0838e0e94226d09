/**
 * The frame fuzzer of MCP, both directions: mutated frames of a client over standard input and output, a legacy session, the
 * modern era and the common address; mutated frames of a server before each of its answers. Judged by the oracle: whatever the
 * server saw as an act has an allow of exactly those arguments before it, and a client hears only what it may.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { CoreEvent } from '../../src/model/events.ts';
import { comparableText } from '../../src/receipt/seal/canonical-json.ts';
import { openMcpGateway } from '../support/mcp/gateway.ts';
import { type Contact, forgetLogs, newestPosition, violations } from '../support/oracle/oracle.ts';
import { clientFrame, serverFrame } from './mcp/frames.ts';
import { openLanes } from './mcp/lanes.ts';
import { openFuzzedUpstream } from './mcp/upstream.ts';

export interface FuzzOptions {
  readonly frames: number;
  readonly seed?: number;
}
export interface Fuzzed {
  readonly frames: number;
  readonly violations: string[];
}

/** So many frames share a gateway: its log is read once, at its end. */
const ROUND = 4_000;
/** So many are on their way at once. */
const WAVE = 240;
const HUNG_MS = 30_000;
const RULES = [
  '- { id: calls, when: { tool: [echo, forced] }, then: allow }',
  '- { id: odd, when: { kind: extension, tool: acme/allowed }, then: allow }',
  '- { id: others, when: { effect: unknown }, unless: { tool: [echo, forced, acme/allowed] }, then: block, say: no }',
].join('\n');

export async function fuzzMcp({ frames, seed = Date.now() % 2 ** 31 }: FuzzOptions): Promise<Fuzzed> {
  const found: string[] = [];
  const crashed = (cause: unknown) =>
    void found.push(`crashed: ${cause instanceof Error ? cause.stack : String(cause)}`);
  process.on('unhandledRejection', crashed).on('uncaughtException', crashed);
  let done = 0;
  try {
    while (done < frames && found.length === 0) {
      const count = Math.min(ROUND, frames - done);
      found.push(...(await round(count, seed + done)));
      done += count;
    }
  } finally {
    process.off('unhandledRejection', crashed).off('uncaughtException', crashed);
  }
  return { frames: done, violations: found.map((each) => `seed ${seed}: ${each}`) };
}

async function round(count: number, seed: number): Promise<string[]> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-fuzz-mcp-'));
  const wrong: string[] = [];
  const contacts: Contact[] = [];
  const said = fc.sample(serverFrame, { numRuns: 997, seed });
  let at = 0;
  const hooks = {
    act: (seen: Omit<Contact, 'after'>) => void contacts.push({ ...seen, after: newestPosition(dir) }),
    wrong: (what: string) => void wrong.push(`the server saw ${what}`),
    next: () => (at++ % 3 === 0 ? said[at % said.length] : undefined),
  };
  const [old, modern] = [await openFuzzedUpstream(hooks), await openFuzzedUpstream(hooks)];
  const upstreams = { old: { url: old.url, era: 'legacy' as const }, new: { url: modern.url, era: 'modern' as const } };
  const gateway = await openMcpGateway({ upstreams, rules: RULES, dir });
  try {
    const all = fc.sample(clientFrame, { numRuns: count, seed: seed + 1 });
    const lanes = await openLanes(gateway, (what) => void wrong.push(what));
    for (let from = 0; from < all.length && wrong.length === 0; from += WAVE) {
      const wave = all.slice(from, from + WAVE);
      const sent = wave.map((frame, index) => lanes[index % lanes.length]?.send(frame));
      const fenced = Promise.all([...sent, ...lanes.map((lane) => lane.fence?.())]);
      if (!(await inTime(fenced)))
        wrong.push(`nothing was answered within ${HUNG_MS} ms, frames ${from} to ${from + WAVE}`);
    }
    for (const lane of lanes) await lane.close();
    const events: CoreEvent[] = [];
    for await (const event of gateway.runtime.store.read({ stream: { of: 'all' } })) events.push(event);
    const digest = (args: object) => gateway.runtime.keyring.signer().mac(comparableText(args));
    return [...wrong, ...violations(events, contacts, digest)];
  } finally {
    await gateway.close();
    await Promise.all([old.close(), modern.close()]);
    forgetLogs();
    await rm(dir, { recursive: true, force: true });
  }
}

async function inTime(work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), HUNG_MS);
  });
  const done = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return done;
}
