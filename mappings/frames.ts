/**
 * What becomes of a frame, as a table: its method, who sends it, and which kind of frame it may be. A frame is judged by
 * all three, so that a call sent as a notification is still a call. Knows no protocol; each protocol's table is its own file.
 */
import type { Effect } from '../src/model/words.ts';

/** An entry of a batch is judged as the frame it is. Responses are paired with their requests, not looked up here. */
export type FrameKind = 'request' | 'notification';

/**
 * `act`: it may have an effect and is decided as an act. `pass`: it is carried to the other side and written down.
 * `answer`: it is about this connection only and is answered here. `refuse`: it never crosses, and its sender is told why.
 */
export type Handling = 'act' | 'pass' | 'answer' | 'refuse';

export interface FrameRow<Side extends string = string> {
  /** As it travels. A name that ends in `*` is a name space which the protocol reserves for extensions. */
  readonly method: string;
  /** Who sends it. Two rows where either side may. */
  readonly from: Side;
  readonly frame: FrameKind;
  readonly handling: Handling;
  /** Of an act: what it does to the world, where its method alone shows that. Absent: `unknown`. */
  readonly effect?: Effect;
  /** Owed by every name space, every refusal, and every extension that passes. */
  readonly why?: string;
}

export type Judgement<Row> =
  | { readonly handling: Exclude<Handling, 'refuse'>; readonly row?: Row }
  | { readonly handling: 'refuse'; readonly reason: string };

export interface FrameTable<Row extends FrameRow> {
  readonly rows: readonly Row[];
  /** An unknown request is an act of effect `unknown`; an unknown notification is refused. */
  judge(from: Row['from'], frame: FrameKind, method: string): Judgement<Row>;
}

export function frameTable<const Row extends FrameRow>(rows: readonly Row[]): FrameTable<Row> {
  const exact = new Map<string, Row>();
  const spaces: Row[] = [];
  const known = new Map<string, Row[]>();
  for (const row of rows) {
    const open = row.method.endsWith('*');
    if ((open || row.handling === 'refuse') && !row.why?.trim()) throw new Error(`${row.method} does not say why`);
    if (open) {
      spaces.push(row);
      continue;
    }
    const key = `${row.from} ${row.frame} ${row.method}`;
    if (exact.has(key)) throw new Error(`two rows say what becomes of ${row.method} from the ${row.from}`);
    exact.set(key, row);
    known.set(row.method, [...(known.get(row.method) ?? []), row]);
  }

  function judge(from: Row['from'], frame: FrameKind, method: string): Judgement<Row> {
    const row = exact.get(`${from} ${frame} ${method}`);
    if (row) return judged(row);
    const others = known.get(method);
    if (others) return { handling: 'refuse', reason: misplaced(from, frame, method, others) };
    const space = spaces.find((one) => one.from === from && one.frame === frame && within(one.method, method));
    if (space) return judged(space);
    if (frame === 'request') return { handling: 'act' };
    return { handling: 'refuse', reason: `${shown(method)} is not a notification of this protocol` };
  }
  return { rows, judge };
}

function judged<Row extends FrameRow>(row: Row): Judgement<Row> {
  if (row.handling === 'refuse') return { handling: 'refuse', reason: row.why as string };
  return { handling: row.handling, row };
}

function misplaced(from: string, frame: FrameKind, method: string, rows: readonly FrameRow[]): string {
  const mine = rows.find((row) => row.from === from);
  if (!mine) return `${method} is sent by the ${rows[0]?.from}, not by the ${from}`;
  return mine.frame === 'request'
    ? `${method} is a request and needs an id; as a ${frame} it is not passed on`
    : `${method} is a notification and has no id; as a ${frame} it is not passed on`;
}

function within(space: string, method: string): boolean {
  const prefix = space.slice(0, -1);
  return method.length > prefix.length && method.startsWith(prefix);
}

/** A name nobody knows may be anything, and goes into a message that people read. */
function shown(method: string): string {
  return JSON.stringify(method.length > 80 ? `${method.slice(0, 79)}…` : method);
}
