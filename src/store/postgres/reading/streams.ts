/**
 * Reads one stream, page by page, from a position on. A page is one short query. A task, a session and a resource are read through their
 * locations; a workspace has too many of them, and is read by the spans of the log it appears in.
 */
import type { Stream } from '../../../model/events.ts';
import { SPAN } from '../../engine/commit/write-set.ts';
import type { Events, Reader, StoredBody } from '../../engine/database.ts';
import type { Connections, ResultRows, Value } from '../connection/connections.ts';
import { filledIn } from '../schema/migrations.ts';

type MemberStream = Exclude<Stream, { of: 'all' | 'workspace' }>;

/** Spans per query bound the work, however rarely a workspace appears in them. */
const SPANS = 16;

export function createStreams(connections: Connections, schema: string): Pick<Events, 'open' | 'prunedFrom' | 'tip'> {
  const sql = (text: string) => filledIn(text, schema);
  // Behind the floor, whatever the reader has reached: pruned events may still lie there.
  const RANGE = sql(
    `SELECT position, body FROM $S.events WHERE position > greatest($1, (SELECT floor FROM $S.state)) AND position > $1
     AND position <= $2 ORDER BY position LIMIT $3`,
  );
  const MEMBERS = {
    resource: 'p.resource = (SELECT id FROM $S.resources WHERE object = $1 AND name = $2)',
    task: 'p.task = $1 AND $2::text IS NULL',
    session: 'p.session = $1 AND $2::text IS NULL',
  };
  // The first events of each location, and of these the first: no location's events are sorted.
  const pageOf = (members: string): string =>
    sql(
      `SELECT e.position, e.body FROM (
         SELECT near.position FROM $S.places p CROSS JOIN LATERAL (
           SELECT e.position FROM $S.events e WHERE e.place = p.id AND e.position > $3
             AND e.position > (SELECT floor FROM $S.state) AND e.position <= $4 ORDER BY e.position LIMIT $5) near
         WHERE ${members} ORDER BY near.position LIMIT $5) found
       JOIN $S.events e ON e.position = found.position ORDER BY e.position`,
    );
  const tipOf = (members: string): string =>
    sql(
      `SELECT max(last.position) FROM $S.places p CROSS JOIN LATERAL (
         SELECT e.position FROM $S.events e WHERE e.place = p.id AND e.position > (SELECT floor FROM $S.state)
         ORDER BY e.position DESC LIMIT 1) last WHERE ${members}`,
    );
  const prunedOf = (members: string): string =>
    sql(`SELECT min(nullif(p.pruned, 0)) FROM $S.places p WHERE ${members}`);
  const statements = Object.fromEntries(
    Object.entries(MEMBERS).map(([of, members]) => [
      of,
      { page: pageOf(members), tip: tipOf(members), pruned: prunedOf(members) },
    ]),
  ) as Record<keyof typeof MEMBERS, { readonly page: string; readonly tip: string; readonly pruned: string }>;
  const SPANS_FROM = sql(
    'SELECT span FROM $S.spans WHERE workspace = $1 AND span >= $2 AND span <= $3 ORDER BY span LIMIT $4',
  );
  const IN_SPANS = sql(
    `SELECT e.position, e.body FROM unnest($1::bigint[]) AS s (span) JOIN $S.events e
       ON e.position >= s.span * ${SPAN} AND e.position < s.span * ${SPAN} + ${SPAN} JOIN $S.places p ON p.id = e.place
     WHERE e.position > $2 AND e.position > (SELECT floor FROM $S.state) AND e.position <= $3 AND p.workspace = $4
     ORDER BY e.position LIMIT $5`,
  );
  const LAST_SPANS = sql('SELECT span FROM $S.spans WHERE workspace = $1 ORDER BY span DESC LIMIT 1');
  const LAST_IN_SPAN = sql(
    `SELECT e.position FROM $S.events e JOIN $S.places p ON p.id = e.place WHERE e.position >= $1 AND e.position < $2
     AND e.position > (SELECT floor FROM $S.state) AND p.workspace = $3 ORDER BY e.position DESC LIMIT 1`,
  );
  const LAST = sql('SELECT position FROM $S.state');

  const keyOf = (stream: MemberStream): Value[] =>
    stream.of === 'resource' ? [stream.object, stream.id] : [stream.id, null];
  /** The driver has no bound for integers beyond 2^63. */
  const bound = (position: number): number => Math.min(position, Number.MAX_SAFE_INTEGER);

  function paged(query: (after: number, upTo: number, most: number) => Promise<ResultRows>, after: number): Reader {
    let at = after;
    return {
      async page(upTo, most) {
        const items = itemsOf(await query(at, bound(upTo), most));
        at = items.at(-1)?.position ?? at;
        return { items, done: items.length < most };
      },
    };
  }

  function workspace(id: string, after: number): Reader {
    let at = after;
    return {
      async page(wanted, most) {
        const upTo = bound(wanted);
        if (at >= upTo) return { items: [], done: true };
        const found = await connections.query(SPANS_FROM, [
          ...[id, Math.floor((at + 1) / SPAN), Math.floor(upTo / SPAN), SPANS],
        ]);
        const spans = found.map(([span]) => span as number);
        const last = spans.at(-1);
        if (last === undefined) return { items: [], done: true };
        const items = itemsOf(await connections.query(IN_SPANS, [spans, at, upTo, id, most]));
        const end = Math.min(upTo, last * SPAN + SPAN - 1);
        at = items.length === most ? items.at(-1)!.position : end;
        return { items, done: items.length < most && (spans.length < SPANS || at >= upTo) };
      },
    };
  }

  async function workspaceTip(id: string): Promise<number | undefined> {
    const [found] = await connections.query(LAST_SPANS, [id]);
    if (!found) return undefined;
    const span = found[0] as number;
    const [last] = await connections.query(LAST_IN_SPAN, [span * SPAN, span * SPAN + SPAN, id]);
    return last?.[0] as number | undefined;
  }

  const one = async (query: Promise<ResultRows>): Promise<number | undefined> =>
    ((await query)[0]?.[0] as number | null | undefined) ?? undefined;

  return {
    open(stream, after) {
      if (stream.of === 'all') return paged((from, upTo, most) => connections.query(RANGE, [from, upTo, most]), after);
      if (stream.of === 'workspace') return workspace(stream.id, after);
      const { page } = statements[stream.of];
      return paged((from, upTo, most) => connections.query(page, [...keyOf(stream), from, upTo, most]), after);
    },
    prunedFrom: (stream) =>
      stream.of === 'all' || stream.of === 'workspace'
        ? undefined
        : one(connections.query(statements[stream.of].pruned, keyOf(stream))),
    async tip(stream) {
      if (stream.of === 'all') return (await one(connections.query(LAST))) || undefined;
      if (stream.of === 'workspace') return workspaceTip(stream.id);
      return one(connections.query(statements[stream.of].tip, keyOf(stream)));
    },
  };
}

function itemsOf(rows: ResultRows): StoredBody[] {
  return rows.map(([position, body]) => ({ position: position as number, body: body as string }));
}
