/**
 * Fuzzes the relay between an instrumented editor and an instrumented agent, both in this process, with a real log and real
 * rules. The editor takes down every act it could read in what reaches it, however it splits lines and whichever of two
 * names it takes; the oracle: each has in the log an allow of exactly those arguments, written before it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { createWires } from '../../adapters/acp/relay/frames/pending.ts';
import { createTurns } from '../../adapters/acp/relay/from-editor/turns.ts';
import { createWrappedAgent } from '../../adapters/acp/relay/from-editor/wrapped-agent.ts';
import { openLink } from '../../adapters/acp/relay/link.ts';
import { createRelay } from '../../adapters/acp/relay/relay.ts';
import { PLAIN_SETTINGS } from '../../adapters/acp/relay/settings.ts';
import { createIds } from '../../src/core/clock.ts';
import { openCoreRuntime } from '../../src/runtime/assemble.ts';
import { type Contact, checkActs, forgetLogs, newestPosition } from '../support/oracle/oracle.ts';
import { CWD, spoiledFrames } from './acp/frames.ts';
import { instrumented } from './acp/sides.ts';

export interface Fuzzed {
  readonly frames: number;
  readonly violations: string[];
}

const RULES = `
- { id: here, when: { kind: fs.write, target: "${CWD}/allowed/*" }, then: allow }
- { id: not-there, when: { kind: fs.write, target: "/etc/*" }, then: block, say: not there }
- { id: listing, when: { kind: terminal, target: "ls *" }, then: allow }
- { id: vendor, when: { kind: extension, tool: _vendor/do }, then: allow }
`;
/** Frames of one conversation. A new one begins with a new log, so that none grows too long. */
const CONVERSATION = 2_000;
const AT_ONCE = 200;

export async function fuzzAcp({ frames, seed }: { frames: number; seed: number }): Promise<Fuzzed> {
  const violations: string[] = [];
  // The gateway keeps no process alive by itself; its editor does.
  const alive = setInterval(() => {}, 60_000);
  try {
    for (let done = 0, round = 0; done < frames; round += 1) {
      const count = Math.min(CONVERSATION, frames - done);
      const found = await converse(count, seed + round);
      violations.push(...found.map((each) => `seed ${seed + round}: ${each}`));
      done += count;
    }
  } finally {
    clearInterval(alive);
  }
  return { frames, violations };
}

async function converse(count: number, seed: number): Promise<string[]> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-fuzz-'));
  const pipe = () => new PassThrough({ highWaterMark: 1 << 22 });
  const [toEditor, fromEditor, toAgent, fromAgent] = [pipe(), pipe(), pipe(), pipe()];
  const log = { info() {}, warn() {}, error() {} };
  const ids = createIds();
  const wrapped = createWrappedAgent('bot');
  const gateway = await openCoreRuntime({
    dataDir: dir,
    backends: [wrapped.backend],
    policy: { load: async () => ({ rules: RULES, files: [] }) },
    settings: { graceMs: 200, askExpiresMs: 60_000 },
    logger: log,
  });
  try {
    const { bridge } = gateway;
    const turns = createTurns({ bridge, agent: wrapped, name: 'bot', log, thoughts: 'drop' });
    await gateway.start();
    const link = openLink({
      editor: { input: fromEditor, output: toEditor },
      agent: { stdin: toAgent, stdout: fromAgent },
      additions: true,
    });
    const person = { id: 'local:ana', kind: 'person', scopes: ['*'], door: 'acp' } as const;
    const wires = createWires(link.editor, link.agent);
    const settings = { ...PLAIN_SETTINGS, cwd: CWD };
    const relay = createRelay({ bridge, person, name: 'bot', turns, agent: wrapped, wires, settings, log, ids });
    link.attach(relay);
    const sides = instrumented({ toEditor, fromEditor, toAgent, fromAgent, position: () => newestPosition(dir), seed });
    await sides.greet();
    const list = spoiledFrames(count, seed);
    for (let at = 0; at < list.length; at += AT_ONCE) {
      for (const { from, bytes } of list.slice(at, at + AT_ONCE))
        (from === 'agent' ? fromAgent : fromEditor).write(bytes);
      await sides.sync();
    }
    await sides.settle();
    await relay.editorGone();
    const contacts: readonly Contact[] = sides.contacts;
    return [...sides.violations, ...(await checkActs(dir, contacts))];
  } finally {
    await gateway.close();
    forgetLogs();
    await rm(dir, { recursive: true, force: true });
  }
}
