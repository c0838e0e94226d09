/**
 * Reads one stream, page by page, from a position on. A page is one short query: no statement stays open between pages, so a slow
 * reader blocks no writer and no checkpoint. A workspace has too many resources to merge them, and is read by the spans of the
 * log it appears in.
 */
import type { Stream } from '../../../model/events.ts';
import { SPAN } from '../../engine/commit/write-set.ts';
import type { Page, StoredBody } from '../../engine/database.ts';
import type { Connection } from '../file/connection.ts';
import type { LogRows } from '../log.ts';
import { createMerge, type MemberStream } from './merge.ts';

export interface PagedStream {
  page(upTo: number, most: number): Page;
}
export interface Readers {
  open(stream: Stream, after: number): PagedStream;
  prunedFrom(stream: Stream): number | undefined;
  tip(stream: Stream): number | undefined;
}

export function createReaders(connection: Connection, log: LogRows): Readers {
  const range = connection.prepare(
    'SELECT position, body FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT ?',
  );
  const spanFrom = connection.prepare('SELECT span FROM spans WHERE workspace = ? AND span >= ? ORDER BY span LIMIT 1');
  const lastSpan = connection.prepare('SELECT max(span) FROM spans WHERE workspace = ?');
  const inWorkspace = connection.prepare(
    `SELECT e.position, e.body FROM events e JOIN places p ON p.id = e.place
     WHERE e.position > ? AND e.position <= ? AND p.workspace = ? ORDER BY e.position LIMIT ?`,
  );
  const lastInWorkspace = connection.prepare(
    `SELECT e.position FROM events e JOIN places p ON p.id = e.place
     WHERE e.position >= ? AND e.position < ? AND p.workspace = ? ORDER BY e.position DESC LIMIT 1`,
  );
  const merge = createMerge(connection);

  function all(after: number): PagedStream {
    let at = after;
    return {
      page(upTo, most) {
        const items = (range.all([at, upTo, most]) as [number, string][]).map(item);
        at = items.at(-1)?.position ?? at;
        return { items, done: items.length < most };
      },
    };
  }

  function workspace(id: string, after: number): PagedStream {
    let at = after;
    return {
      page(upTo, most) {
        // One span at a time bounds the work, however rarely the workspace appears.
        const found = spanFrom.get([id, Math.floor((at + 1) / SPAN)]) as [number] | undefined;
        const span = found?.[0];
        if (at >= upTo || span === undefined || span * SPAN > upTo) return { items: [], done: true };
        const end = Math.min(upTo, span * SPAN + SPAN - 1);
        const items = (inWorkspace.all([at, end, id, most]) as [number, string][]).map(item);
        at = items.length === most ? items.at(-1)!.position : end;
        return { items, done: at >= upTo };
      },
    };
  }

  function workspaceTip(id: string): number | undefined {
    const span = (lastSpan.get([id]) as [number | null])[0];
    if (span === null) return undefined;
    return (lastInWorkspace.get([span * SPAN, span * SPAN + SPAN, id]) as [number] | undefined)?.[0];
  }

  return {
    open(stream, after) {
      if (stream.of === 'all') return all(after);
      if (stream.of === 'workspace') return workspace(stream.id, after);
      return merge.open(stream as MemberStream, after);
    },
    prunedFrom: (stream) =>
      stream.of === 'all' || stream.of === 'workspace' ? undefined : merge.prunedFrom(stream as MemberStream),
    tip(stream) {
      if (stream.of === 'all') return log.last() || undefined;
      if (stream.of === 'workspace') return workspaceTip(stream.id);
      return merge.tip(stream as MemberStream);
    },
  };
}

function item([position, body]: [number, string]): StoredBody {
  return { position, body };
}
