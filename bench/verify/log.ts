/**
 * A log as a gateway leaves it, of any length. One session of the demo's agent is lived through (text, tool calls, questions that are
 * answered); then it is lived again and again under other ids: the same events through the same store and projector, each task
 * with a receipt of the same issuer, many sessions at once, heads signed over both trees in between. Only the agent is left out,
 * which makes a long log a matter of seconds.
 */
import { join } from 'node:path';
import { systemClock } from '../../src/core/clock.ts';
import { projector } from '../../src/core/events/projector.ts';
import { createDemoAgent } from '../../src/demo/agent.ts';
import { createDemoTools } from '../../src/demo/tools.ts';
import type { Actor } from '../../src/model/actions.ts';
import { type CoreEvent, type EventDraft, position } from '../../src/model/events.ts';
import type { AskOpenedPayload } from '../../src/model/payloads.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import type { Task } from '../../src/model/resources.ts';
import type { Signer, Store } from '../../src/ports/index.ts';
import { createIssuer } from '../../src/receipt/build/issuer.ts';
import { createCheckpoints } from '../../src/receipt/seal/checkpoints.ts';
import { openKeyring } from '../../src/receipt/seal/keys.ts';
import { openCoreRuntime } from '../../src/runtime/assemble.ts';
import { FIRST_RULES } from '../../src/runtime/config/config.ts';
import { createSqliteStore } from '../../src/store/sqlite/index.ts';

const ANA: Actor = { id: 'local:ana', kind: 'person', scopes: ['*'], door: 'cli', interactive: true };
const TEXTS = ['hello', 'read plan', 'hello', 'write plan anew'];
/** Sessions at once. */
const CONCURRENT_WRITERS = 128;
/** Events between two signed heads. */
const SIGNED = { most: 1_000 };
const ENDS = /^task\.(completed|failed|canceled)$/;

/** At least this many events; gives how many there are. A further call makes the same log longer. */
export async function growLog(dataDir: string, events: number): Promise<number> {
  // No gateway is open while the rest is written: it would recover the unfinished tasks as orphans.
  const recorded = await record(dataDir);
  const clock = systemClock;
  const signer = (await openKeyring({ dir: join(dataDir, 'keys'), now: () => clock.now() })).signer();
  const store = await createSqliteStore({ path: join(dataDir, 'log.db'), clock, projector });
  const heads = createCheckpoints({ store, log: store, signer, clock });
  const size = async (): Promise<number> => position((await store.tip({ of: 'all' })) ?? '') ?? 0;
  try {
    const live = living(store, signer, recorded);
    let next = await size();
    const one = async (): Promise<void> => {
      while ((await size()) < events) await live(next++);
    };
    await Promise.all(Array.from({ length: CONCURRENT_WRITERS }, one));
    while ((await heads.take(SIGNED)).events);
    return await size();
  } finally {
    await store.close();
  }
}

interface Recorded {
  readonly events: readonly CoreEvent[];
  readonly receipts: readonly Receipt[];
}

async function record(dataDir: string): Promise<Recorded> {
  const runtime = await openCoreRuntime({
    dataDir,
    policy: { load: async () => ({ rules: FIRST_RULES, files: [] }) },
    backends: [createDemoAgent({ pause: async () => {} })],
    tools: [createDemoTools()],
  });
  try {
    await runtime.start();
    return await session(runtime);
  } finally {
    await runtime.close();
  }
}

async function session({ bridge, store }: Awaited<ReturnType<typeof openCoreRuntime>>): Promise<Recorded> {
  const id = 'workspace_bench';
  if (!(await store.get('workspace', id))) {
    const body = { object: 'workspace', id, body: { name: id, root: 'tollbridge://bench' } } as const;
    await bridge.submit({ kind: 'resource.create', actor: ANA, body });
  }
  const made = await bridge.submit({ kind: 'session.create', actor: ANA, body: { workspace_id: id } });
  const session_id = made.resource.id;
  for (const text of TEXTS) {
    const { resource } = await bridge.submit({
      kind: 'task.submit',
      actor: ANA,
      body: { session_id, input: { text } },
    });
    const stream = { of: 'task', id: resource.id } as const;
    for await (const event of bridge.follow(ANA, { stream }, AbortSignal.timeout(20_000))) {
      if (ENDS.test(event.event)) break;
      if (event.event !== 'vendor.tollbridge.ask_opened') continue;
      const { ask } = event.payload as unknown as AskOpenedPayload;
      await bridge.submit({ kind: 'ask.answer', actor: ANA, body: { ask_id: ask.id, approved: true } });
    }
  }
  const events: CoreEvent[] = [];
  for await (const event of store.read({ stream: { of: 'session', id: session_id } })) events.push(event);
  const tasks = new Set(events.flatMap(({ event, task_id }) => (ENDS.test(event) && task_id ? [task_id] : [])));
  const found = await Promise.all([...tasks].map((task) => store.receipts({ task, limit: 1 })));
  return { events, receipts: found.flat().map(({ receipt }) => receipt) };
}

/** Lives the session once more, under ids made from a number. */
function living(store: Store, signer: Signer, { events, receipts }: Recorded) {
  const units = unitsOf(events);
  const issued = new Map(receipts.map((receipt) => [receipt.identifiers.task_id, receipt]));
  const issuer = createIssuer({ signer, issuer: receipts[0]!.issuer, source: 'tollbridge' });
  return async (number: number): Promise<void> => {
    // The time in an id is what tells one life from another: what comes behind it tells the ids of one life apart.
    const time = String(number).padStart(10, '0');
    const renamed = (text: string): string => text.replace(/_[0-9A-Z]{10}(?=[0-9A-Z]{16}\b)/g, `_${time}`);
    let account = issuer.account();
    for (const unit of units) {
      const drafts = JSON.parse(renamed(JSON.stringify(unit.map(draftOf)))) as EventDraft[];
      const last = drafts.at(-1)!;
      if (!ENDS.test(last.event)) {
        for (const event of (await store.commit({ decide: () => ({ events: drafts }) })).events) account.add(event);
        continue;
      }
      const task = last.payload.task as unknown as Task;
      const { lifecycle, trust } = issued.get(unit.at(-1)!.task_id!)!;
      const { created_at = task.created_at, started_at, completed_at } = lifecycle;
      const ending = account;
      await store.commit({
        decide: () => ({
          events: drafts,
          receipt: {
            chain: task.workspace_id,
            seal: (head, written) =>
              ending.seal(
                {
                  receipt_id: task.receipt_id!,
                  task,
                  final_state: lifecycle.final_state,
                  times: { created_at, started_at, completed_at, issued_at: completed_at },
                  tiers: { start: trust.start_tier, end: trust.end_tier },
                  last: drafts.slice(0, -1),
                },
                head,
                written,
              ),
          },
        }),
      });
      account = issuer.account();
    }
  };
}

/** A few events to a commit, as they come from an agent; those that end a task are one. */
function unitsOf(events: readonly CoreEvent[]): readonly (readonly CoreEvent[])[] {
  const units: CoreEvent[][] = [[]];
  for (const event of events) {
    const unit = units.at(-1)!;
    if (event.event === 'receipt.issued' && unit.length > 0) units.push([event]);
    else unit.push(event);
    if (ENDS.test(event.event) || (unit.length >= 4 && event.event !== 'receipt.issued')) units.push([]);
  }
  return units.filter((unit) => unit.length > 0);
}

function draftOf({ id, sequence, object, created_at, updated_at, ...draft }: CoreEvent): EventDraft {
  return draft as EventDraft;
}
