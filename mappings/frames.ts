/**
 * Handling of a frame, as a table: method, sender and kind of frame. A frame is judged by all three, so a call sent as a
 * notification is still a call. This file knows no protocol; each protocol's table is its own file.
 */
import type { Effect } from '../src/model/words.ts';

/** Each entry of a batch is judged as its own frame. Responses are paired with their requests and not looked up here. */
export type FrameKind = 'request' | 'notification';

/**
 * `act`: may have an effect and is decided as an act. `pass`: is recorded and sent to the other side. `answer`: concerns only
 * this connection and is answered here. `refuse`: never crosses, and the sender gets the reason.
 */
export type Handling = 'act' | 'pass' | 'answer' | 'refuse';

export interface FrameRow<Side extends string = string> {
  /** As on the wire. A name that ends in `*` is a namespace the protocol reserves for extensions. */
  readonly method: string;
  /** The sender. A method that both sides may send has two rows. */
  readonly from: Side;
  readonly frame: FrameKind;
  readonly handling: Handling;
  /** For an act: its effect, where the method alone shows it. Absent: `unknown`. */
  readonly effect?: Effect;
  /** Required for every namespace, every refusal, and every extension that passes. */
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

/** The same for a protocol of HTTP requests: a method and a path instead of a name, and always a request. */
export interface RouteRow {
  readonly id: string;
  readonly method: string;
  /** `{name}` stands for one segment that the caller chooses. */
  readonly path: string;
  /**
   * `act`: decided as an act before it has any effect. `pass`: recorded and given to the agent or remote at work. `answer`:
   * answered from the records kept here. `refuse`: known, and not served.
   */
  readonly handling: Handling;
  readonly why?: string;
}

export interface RouteTable<Row extends RouteRow> {
  readonly rows: readonly Row[];
}

export function routeTable<Row extends RouteRow>(rows: readonly Row[]): RouteTable<Row> {
  const known = new Set<string>();
  for (const { id, method, path, handling, why } of rows) {
    if (!HANDLINGS.includes(handling)) throw new Error(`${id} does not say what becomes of it`);
    if (handling === 'refuse' && !why?.trim()) throw new Error(`${id} does not say why`);
    const key = `${method} ${path.replace(/\{[^}]*\}/g, '{}')}`;
    if (known.has(key) || known.has(id)) throw new Error(`two rows say what becomes of ${method} ${path}`);
    known.add(key).add(id);
  }
  return { rows };
}
const HANDLINGS: readonly Handling[] = ['act', 'pass', 'answer', 'refuse'];

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

/** An unknown name may contain anything and goes into a message that people read. */
function shown(method: string): string {
  return JSON.stringify(method.length > 80 ? `${method.slice(0, 79)}…` : method);
}
