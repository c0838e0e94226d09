/**
 * The built gateway, killed a few times under load, keeps what it promised; `npm run crash` does the same for longer. And
 * the checker that says so is shown to notice every kind of promise that is not kept.
 */
import { existsSync } from 'node:fs';
import { appendFile, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import Database from 'libsql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CoreEvent } from '../../src/model/events.ts';
import { Broken } from './broken.ts';
import type { Ledger, Write } from './clients/ledger.ts';
import { type DataDirectory, liveThrough } from './data-directory.ts';
import { type Evidence, readEvidence } from './evidence.ts';
import { everythingEnded, keepsPromises } from './promises.ts';
import { createChance } from './random.ts';

const KILLS = 6;
const PROGRAM = resolve(import.meta.dirname, '../../dist/src/main.js');

let root: string;
let runtime: DataDirectory;
let evidence: Evidence;

beforeAll(async () => {
  if (!existsSync(PROGRAM)) throw new Error('the gateway is not built: npm run build');
  root = await mkdtemp(join(tmpdir(), 'tollbridge-crash-'));
  const chance = createChance('a short life 218');
  const reported: string[] = [];
  const deps = { program: PROGRAM, root, chance, clients: 4, starts: [], say: (text: string) => reported.push(text) };
  runtime = await liveThrough(KILLS, deps).catch((broken) => {
    throw new Error(`${broken}\n${reported.join('\n')}\nThe data is in ${root}`, { cause: broken });
  });
  evidence = await look(runtime.location.dataDir);
}, 180_000);

afterAll(async () => {
  await evidence?.close();
  if (runtime) await rm(root, { recursive: true, force: true });
});

function look(dataDir: string, journal = runtime.location.journal): Promise<Evidence> {
  return readEvidence({ dataDir, journal, copy: join(root, 'looked-at') });
}

test('killed again and again, it keeps its promises and finishes its work', () => {
  const { report } = runtime;
  expect(report.moments).toEqual(['load', 'effect', 'start', 'load', 'event', 'recovery']);
  expect(report.receipts).toBe(report.tasks);
  for (const count of ['tasks', 'effects', 'asks', 'acknowledged', 'delivered', 'retried'] as const)
    expect(report[count], count).toBeGreaterThan(0);
});

describe('the checker notices', () => {
  /** The evidence, or what clients say, with one thing wrong. */
  const wrong: [
    what: string,
    promise: string,
    spoil: () => { evidence?: Partial<Evidence>; ledger?: Partial<Ledger> },
  ][] = [
    ['a missing event', 'events have no gap', () => ({ evidence: { events: evidence.events.toSpliced(5, 1) } })],
    [
      'a missing end of the log',
      'acknowledged events are there',
      () => ({ evidence: { events: evidence.events.slice(0, 3) } }),
    ],
    [
      'a gap in one resource',
      'sequences have no gap',
      () => ({
        evidence: { events: changed(evidence.events, 20, (event) => ({ ...event, sequence: event.sequence + 1 })) },
      }),
    ],
    [
      'an event that reads differently now',
      'acknowledged events are unchanged',
      () => {
        const { frames } = runtime.ledger.streams.find((stream) => stream.frames.length > 0)!;
        const at = evidence.events.findIndex(({ id }) => id === frames[0]?.id);
        return { evidence: { events: changed(evidence.events, at, (event) => ({ ...event, actor: 'someone else' })) } };
      },
    ],
    [
      'a stream that left something out',
      'a stream is complete',
      () => {
        const stream = runtime.ledger.streams.find(({ frames }) => frames.length > 2)!;
        return { ledger: { streams: [{ ...stream, frames: stream.frames.toSpliced(1, 1) }] } };
      },
    ],
    [
      'a state nobody was ever in',
      'what was shown is there',
      () => ({ ledger: { looks: [{ task: [...evidence.tasks.keys()][0]!, status: 'INPUT_REQUIRED_TWICE' }] } }),
    ],
    [
      'a task that is not where its events say',
      'a task is where its events say',
      () => {
        const [id, task] = [...evidence.tasks][0]!;
        return { evidence: { tasks: new Map([...evidence.tasks, [id, { ...task, status: 'WORKING' }]]) } };
      },
    ],
    [
      'a second end',
      'transitions are legal',
      () => {
        const end = completed();
        const { sequence } = evidence.events.findLast(({ resource }) => resource.id === end.resource.id)!;
        const id = `evt_${String(evidence.events.length + 1).padStart(16, '0')}`;
        const now = evidence.events.at(-1)!.created_at;
        return {
          evidence: { events: [...evidence.events, { ...end, id, sequence: sequence + 1, created_at: now }] },
        };
      },
    ],
    ['a missing receipt', 'the chain verifies', () => ({ evidence: { receipts: evidence.receipts.toSpliced(1, 1) } })],
    [
      'an edited receipt',
      'the chain verifies',
      () => {
        const [first, ...rest] = evidence.receipts;
        const receipt = { ...first!.receipt, issued_at: '2026-01-01T00:00:00.000Z' };
        return { evidence: { receipts: [{ ...first!, receipt }, ...rest] } };
      },
    ],
    [
      'an effect that ran twice',
      'no effect runs twice',
      () => ({ evidence: { effects: [...evidence.effects, evidence.effects[0]!] } }),
    ],
    [
      'an effect nobody decided about',
      'no effect without a decision',
      () => ({ evidence: { effects: [...evidence.effects, { ...evidence.effects[0]!, call: 'task_x.call1' }] } }),
    ],
    [
      'an effect with other arguments',
      'what runs is what was allowed',
      () => {
        const [first, ...rest] = evidence.effects;
        return { evidence: { effects: [{ ...first!, arguments: { to: 'everyone' } }, ...rest] } };
      },
    ],
    [
      'a completed call that had no effect',
      'a completed call has happened',
      () => {
        const done = evidence.events.find(
          ({ event, payload }) => event === 'tool.completed' && payload.name !== 'read_note',
        );
        const call = done?.payload.tool_call_id;
        return { evidence: { effects: evidence.effects.filter((effect) => effect.call !== call) } };
      },
    ],
    [
      'an open question that is gone',
      'open questions stay open',
      () => ({ ledger: { asks: new Map([['ask_gone', { expires_at: '2999-01-01T00:00:00.000Z' }]]) } }),
    ],
    [
      'an answer nobody gave',
      'open questions stay open',
      () => ({ ledger: { writes: runtime.ledger.writes.filter(({ kind }) => kind !== 'answer') } }),
    ],
    [
      'a write that is not there',
      'acknowledged writes are there',
      () => ({ ledger: { writes: [...runtime.ledger.writes, claimed('session', 'n-nobody-1', 'session_none')] } }),
    ],
    [
      'a write that was done and then refused',
      'a retry finds what the first try did',
      () => ({
        ledger: {
          writes: runtime.ledger.writes.map((write) =>
            write.kind === 'task' && write.reply?.status === 202
              ? { ...write, reply: { status: 409, body: {} } }
              : write,
          ),
        },
      }),
    ],
    ['a task that was made twice', 'a retry does nothing twice', () => withAnother('session.created')],
    ['a message that was said again', 'nothing is said twice', () => withAnother('agent.message')],
    [
      'an approval that was used again',
      'an approval is good for one act',
      () => withAnother('vendor.tollbridge.ask_used'),
    ],
    [
      'work that began before anyone allowed it',
      'guarded work waits for a yes',
      () => {
        // One that was free to begin, and did: any other would rightly pass.
        const spoke = new Set(
          evidence.events.flatMap(({ event, task_id }) => (/^agent\./.test(event) ? [task_id] : [])),
        );
        const at = evidence.events.findIndex(({ event, task_id, payload }) => {
          const { action, decision } = payload as { action?: { kind?: string }; decision?: { verdict?: string } };
          if (event !== 'vendor.tollbridge.decided' || !task_id || evidence.replays.has(task_id)) return false;
          return action?.kind === 'prompt' && decision?.verdict === 'allow' && spoke.has(task_id);
        });
        const { payload } = evidence.events[at]!;
        const asking = { ...payload, decision: { verdict: 'escalate' } };
        const events = changed(evidence.events, at, (event) => ({ ...event, payload: asking }) as typeof event);
        return { evidence: { events }, ledger: { streams: [] } };
      },
    ],
    ['a file without bytes', 'files are there', () => ({ evidence: { blob: async () => undefined } })],
  ];

  test.each(wrong)('%s', async (_, promise, spoil) => {
    const { evidence: other, ledger } = spoil();
    const spoiled = { ...runtime.ledger, ...ledger } as Ledger;
    expect(await broken(keepsPromises({ ...evidence, ...other }, spoiled))).toBe(promise);
  });

  test('nothing, when nothing is wrong', async () => {
    await keepsPromises(evidence, runtime.ledger);
    everythingEnded(evidence, runtime.ledger);
  });

  test('work that was left undone', () => {
    const runs = new Set(['task_left']);
    expect(() => everythingEnded({ ...evidence, runs }, runtime.ledger)).toThrow(/every accepted task reaches an end/);
  });

  test('a projection that is not what the events say', async () => {
    const other = await spoiledCopy('rows', (path) => {
      const db = new Database(path);
      db.exec(`UPDATE tasks SET body = json_set(body, '$.status', 'FAILED')`);
      db.close();
    });
    expect(await broken(look(other))).toBe('projections equal a rebuild');
  });

  test('a journal that was cut', async () => {
    const journal = join(root, 'cut-journal');
    await writeFile(journal, (await readFile(runtime.location.journal, 'utf8')).trimEnd());
    expect(await broken(look(runtime.location.dataDir, journal))).toBe('the journal is whole');
    await appendFile(journal, '\n');
    await (await look(runtime.location.dataDir, journal)).close();
  });
});

function completed(): CoreEvent {
  // Not a replay: what it repeats was decided about in another life.
  return evidence.events.findLast(
    ({ event, task_id }) => event === 'task.completed' && !evidence.replays.has(task_id ?? ''),
  )!;
}

/** The log with one event in it a second time, in a place where nothing else is missed, and streams nobody followed. */
function withAnother(kind: string): { evidence: Partial<Evidence>; ledger: Partial<Ledger> } {
  const { events } = evidence;
  const at = events.findIndex(({ event }) => event.startsWith('vendor.tollbridge.policy'));
  const { id, sequence, resource, created_at } = events[at]!;
  const again = events.find(({ event }) => event === kind)!;
  const log = changed(events, at, () => ({ ...again, id, sequence, resource, created_at }));
  return { evidence: { events: log }, ledger: { streams: [] } };
}

function changed<T>(list: readonly T[], at: number, change: (item: T) => T): T[] {
  return list.with(at, change(list[at] as T));
}

function claimed(kind: Write['kind'], nonce: string, id: string): Write {
  return { kind, nonce, path: '/', body: {}, sent: 1, reply: { status: 201, body: { id } } };
}

async function spoiledCopy(name: string, spoil: (path: string) => void): Promise<string> {
  const dir = join(root, name);
  await cp(runtime.location.dataDir, dir, { recursive: true, filter: (path) => !path.endsWith('.sock') });
  spoil(join(dir, 'log.db'));
  return dir;
}

/** Which promise was found broken. */
async function broken(looked: Promise<unknown>): Promise<string> {
  const found = await looked.then(() => undefined).catch((thrown) => thrown);
  if (found instanceof Broken) return found.promise;
  throw found ?? new Error('nothing was found wrong');
}
