/**
 * What the dead gateway left on disk, read by someone who was not there. Works on a copy, so that looking changes nothing:
 * the next start finds the files exactly as the kill left them.
 */
import { cp, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { AskRecord } from '../../src/model/asks.ts';
import type { CoreEvent } from '../../src/model/events.ts';
import type { Artifact, Session, Task } from '../../src/model/resources.ts';
import type { Row, StoredReceipt } from '../../src/ports/index.ts';
import { openKeyring } from '../../src/receipt/seal/keys.ts';
import type { Jwks } from '../../src/receipt/seal/public-keys.ts';
import { Broken } from './broken.ts';
import { type CopyLog, fileLog, type StoredRow } from './log-copy.ts';

/** One effect that reached the world. */
export interface Effect {
  readonly tool: string;
  readonly call: string;
  readonly arguments: unknown;
}

export interface Evidence {
  readonly events: readonly CoreEvent[];
  /** Tasks that only repeat what another one did. */
  readonly replays: ReadonlySet<string>;
  readonly tasks: ReadonlyMap<string, Task & Row>;
  readonly sessions: ReadonlyMap<string, Session & Row>;
  readonly asks: ReadonlyMap<string, AskRecord & Row>;
  readonly artifacts: readonly (Artifact & Row)[];
  /** Tasks that have not ended, as the gateway keeps them for itself. */
  readonly runs: ReadonlySet<string>;
  readonly receipts: readonly StoredReceipt[];
  readonly treeSize: number;
  readonly keys: Jwks;
  readonly effects: readonly Effect[];
  /** The stored bytes of a file, if they are there and are what their hash says. */
  blob(sha256: string): Promise<Uint8Array | undefined>;
  close(): Promise<void>;
}

export interface EvidenceLocations {
  readonly dataDir: string;
  readonly journal: string;
  /** Where the copy goes; made new each time. */
  readonly copy: string;
  /** Of a log that is not in the data directory. */
  readonly copyLog?: CopyLog;
}

const clock = { now: () => new Date().toISOString() };

export async function readEvidence({
  dataDir,
  journal,
  copy,
  copyLog = fileLog,
}: EvidenceLocations): Promise<Evidence> {
  await rm(copy, { recursive: true, force: true });
  await mkdir(copy, { recursive: true });
  await cp(dataDir, copy, { recursive: true, filter: (path) => !/\.(leases|sock)$/.test(path) });
  const { store, rows, close } = await copyLog(copy);
  const before = parsed(await rows());
  await store.rebuild();
  sameRows(before, parsed(await rows()));

  const events: CoreEvent[] = [];
  for await (const event of store.read({ stream: { of: 'all' } })) events.push(event);
  const receipts: StoredReceipt[] = [];
  for (;;) {
    const page = await store.receipts({ after: receipts.at(-1)?.position ?? -1, limit: 500 });
    receipts.push(...page);
    if (page.length < 500) break;
  }
  const keyring = await openKeyring({ dir: join(copy, 'keys'), now: clock.now });
  const of = <T extends Row>(object: string) =>
    new Map(before.flatMap(([key, row]) => (row && key.startsWith(`${object} `) ? [[row.id, row as T]] : [])));
  return {
    events,
    replays: new Set(events.flatMap(({ event, task_id }) => (event === 'replay.started' && task_id ? [task_id] : []))),
    receipts,
    tasks: of('task'),
    sessions: of('session'),
    asks: of('ask'),
    artifacts: [...of<Artifact & Row>('artifact').values()],
    runs: new Set(of('run').keys()),
    treeSize: (await store.tree()).size,
    keys: keyring.jwks(),
    effects: await readJournal(journal),
    blob: (sha256) => store.blob(sha256),
    close,
  };
}

type Rows = [key: string, row: Row | null][];

function parsed(rows: readonly StoredRow[]): Rows {
  return rows.map(([object, id, body]) => [`${object} ${id}`, body === null ? null : (JSON.parse(body) as Row)]);
}

function sameRows(live: Rows, rebuilt: Rows): void {
  const again = new Map(rebuilt);
  for (const [key, row] of live) {
    if (!again.has(key)) throw new Broken('projections equal a rebuild', `${key} is in no event`, row);
    if (!isDeepStrictEqual(row, again.get(key)))
      throw new Broken('projections equal a rebuild', `${key} differs`, { live: row, rebuilt: again.get(key) });
    again.delete(key);
  }
  for (const key of again.keys()) throw new Broken('projections equal a rebuild', `${key} is missing`);
}

const LINE = /^(\S+) (\S+) (\{.*\})$/;

async function readJournal(path: string): Promise<Effect[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  if (text !== '' && !text.endsWith('\n'))
    throw new Broken('the journal is whole', 'its last line was cut', text.slice(-200));
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [, tool, call, args] = LINE.exec(line) ?? [];
      if (!tool || !call || !args) throw new Broken('the journal is whole', 'a line cannot be read', line);
      return { tool, call, arguments: JSON.parse(args) as unknown };
    });
}
