/**
 * The world a story happens in: a real gateway in a directory of its own, with the demo agent and its tools, on a clock and
 * names that come out the same every time. A teller gets this and opens its door on it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDemoAgent } from '../../src/demo/agent.ts';
import { createHandOver } from '../../src/demo/hand-over.ts';
import { createDemoTools, type DemoTools } from '../../src/demo/tools.ts';
import type { Actor } from '../../src/model/actions.ts';
import type { CoreEvent, Stream } from '../../src/model/events.ts';
import type { AgentBackend, Ids, Logger } from '../../src/ports/index.ts';
import { createIssuer } from '../../src/receipt/build/issuer.ts';
import { comparableText } from '../../src/receipt/seal/canonical-json.ts';
import { openKeyring } from '../../src/receipt/seal/keys.ts';
import { type CoreRuntime, openCoreRuntime } from '../../src/runtime/assemble.ts';
import { forgetTestStore, newestPosition, openTestStore } from '../support/gateway/test-store.ts';
import { type Contact, forgetLogs, violations } from '../support/oracle/oracle.ts';
import { createStoryClock, createStoryIds, type StoryClock, writeStoryKeys } from './fixed.ts';
import { contains } from './frames.ts';
import type { Story, Until } from './story.ts';

export interface World {
  readonly story: Story;
  readonly runtime: CoreRuntime;
  readonly tools: DemoTools;
  readonly clock: StoryClock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** The caller. A door that proves who is there proves that it is her. */
  readonly ana: Actor;
  readonly workspace: { readonly id: string; readonly root: string };
  /** Of the session, when the story wants one. */
  readonly personaId: string | undefined;
  /** Waits for the next event like this, counting from the last one waited for. */
  until(wanted: Until): Promise<void>;
  /** Lets time pass: questions run out, nobody waits. */
  pass(ms: number): void;
  /** Lets the agent or tool that is held at a pause go on, and holds none after it. */
  release(): void;
  log(stream?: Stream): Promise<CoreEvent[]>;
  /** Everything warned about or worse: a story that ends well leaves none. */
  readonly errorLog: readonly string[];
  /** Calls that reached a tool without an allow of exactly their arguments in the log. */
  undecided(log: readonly CoreEvent[]): readonly string[];
  close(): Promise<void>;
}

/** Longer than anything here takes; a story that waits this long waits for something that does not happen. */
const TIMEOUT_MS = 10_000;
const STREAM_MS = 20;
const STEP_MS = 100;
const CALL_MS = 250;
/** The gateway itself, for what no door shows. */
const SYSTEM: Actor = { id: 'story', kind: 'system', scopes: ['*'] };
/** A person in front of her surface: what she starts she may also approve. */
export const ANA: Actor = { id: 'ana', kind: 'person', scopes: ['*'], interactive: true };

export async function openWorld(story: Story): Promise<World> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-story-'));
  const clock = createStoryClock();
  const ids = createStoryIds();
  const errorLog: string[] = [];
  const logger = collectingLogger(errorLog);
  const gate = createPauses(clock, story.world.hold_at_pause);
  const tools = createDemoTools({ pause: (signal) => gate.pause(CALL_MS, signal) });
  const contacts: Contact[] = [];
  const observed: DemoTools = {
    ...tools,
    call(action, ...rest) {
      contacts.push({ tool: String(action.tool), arguments: action.arguments, after: newestPosition(dir) });
      return tools.call(action, ...rest);
    },
  };
  const stop = new AbortController();
  // Time limits alone do not keep a process running, and a story may be waiting for nothing else.
  const alive = setInterval(() => {}, TIMEOUT_MS);

  await writeStoryKeys(join(dir, 'keys'));
  const keyring = await openKeyring({ dir: join(dir, 'keys'), now: () => clock.now() });
  const pace = { pause: gate.pause, stepMs: STEP_MS, streamMs: STREAM_MS };
  const handOver = createHandOver(() => runtime.bridge);
  const runtime: CoreRuntime = await openCoreRuntime({
    dataDir: dir,
    clock,
    ids,
    logger,
    backends: [
      createDemoAgent({ ...pace, handOver }),
      ...(story.world.helpers ?? []).map((name) =>
        onceTaken(createDemoAgent({ ...pace, name }), () => runtime, stop.signal),
      ),
    ],
    tools: [observed],
    policy: { load: async () => ({ rules: story.world.rules ?? [], rulesName: 'story.json', files: [] }) },
    // Questions run out by this clock, so it has to be looked at often.
    settings: { sweepMs: 20 },
    // As the gateway would make it, but for the version: a release must not rewrite every receipt here.
    replace: {
      openStore: openTestStore,
      issuer: createIssuer({
        signer: keyring.signer(),
        issuer: { id: 'tollbridge', kind: 'harness', name: 'Tollbridge', version: 'story' },
        source: 'tollbridge',
      }),
    },
  });
  await runtime.start();

  const workspace = { id: ids.next('workspace'), root: 'file:///notes' };
  const home = { object: 'workspace' as const, id: workspace.id, body: { name: 'notes', root: workspace.root } };
  await runtime.bridge.submit({ kind: 'resource.create', actor: ANA, body: home });
  const personaId = story.world.persona ? ids.next('persona') : undefined;
  if (story.world.persona && personaId) {
    const body = { object: 'persona' as const, id: personaId, body: story.world.persona };
    await runtime.bridge.submit({ kind: 'resource.create', actor: ANA, body });
  }

  let seen: string | undefined;
  async function until(wanted: Until): Promise<void> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const what = JSON.stringify(wanted);
    if (wanted === 'held') {
      await Promise.race([gate.held, rejected(timeout, `nobody was held at pause ${story.world.hold_at_pause}`)]);
      return;
    }
    const from = { stream: { of: 'all' } as const, ...(seen && { after: seen }) };
    for await (const event of runtime.bridge.follow(SYSTEM, from, AbortSignal.any([timeout, stop.signal]))) {
      seen = event.id;
      if (contains(event, wanted)) return;
    }
    throw new Error(`${story.name}: waited in vain for ${what}`);
  }

  return {
    story,
    runtime,
    tools,
    clock,
    ids,
    logger,
    ana: ANA,
    workspace,
    personaId,
    until,
    pass: (ms) => clock.pass(ms),
    release: gate.release,
    async log(stream = { of: 'workspace', id: workspace.id }) {
      const events: CoreEvent[] = [];
      for await (const event of runtime.store.read({ stream })) events.push(event);
      return events;
    },
    errorLog,
    undecided: (log) => violations(log, contacts, (args) => keyring.signer().mac(comparableText(args))),
    async close() {
      stop.abort();
      clearInterval(alive);
      gate.release();
      forgetLogs();
      forgetTestStore(dir);
      try {
        await runtime.close();
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    },
  };
}

/** Waiting costs no time but the clock's; at the held pause it lasts until the story or a stop ends it. */
function createPauses(clock: StoryClock, holdAt: number | undefined) {
  let count = 0;
  let holding = holdAt !== undefined;
  let reached = () => {};
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return {
    held,
    async pause(ms: number, signal: AbortSignal): Promise<void> {
      count += 1;
      clock.pass(ms);
      if (!holding || count !== holdAt) return;
      reached();
      await Promise.race([released, aborted(signal)]);
    },
    release() {
      holding = false;
      release();
    },
  };
}

/** Begins when the client that gave the work knows that it was taken: two agents at once would write in any order. */
function onceTaken(agent: AgentBackend, runtime: () => CoreRuntime, stop: AbortSignal): AgentBackend {
  return {
    ...agent,
    async start(work, sink, signal) {
      const over = AbortSignal.any([signal, stop]);
      const giver = work.task.parent_task_id;
      if (giver) {
        const reported = runtime().store.follow({ stream: { of: 'task', id: giver } }, over);
        for await (const event of reported) if (event.event === 'agent.handoff') break;
      }
      return await agent.start(work, sink, signal);
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function rejected(signal: AbortSignal, message: string): Promise<never> {
  await aborted(signal);
  throw new Error(message);
}

function collectingLogger(errorLog: string[]): Logger {
  const note = (fields: object, message: string) => {
    const { err } = fields as { err?: unknown };
    errorLog.push(err instanceof Error ? `${message}: ${err.message}` : message);
  };
  return { info() {}, warn: note, error: note };
}
