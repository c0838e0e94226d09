/**
 * Tainted sessions: sessions that have read untrusted content. Later acts of such a session may be that content's instructions, and
 * rules can match this: `attributes: { tainted: true }`. The taint is recorded with its source before the content is delivered; it
 * is never removed, and a session forked from a tainted one is tainted.
 */

import type { Taint } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import type { Pointer, Session } from '../../model/resources.ts';
import { LruMap } from '../../model/values/lru-map.ts';
import type { At, Row, Store } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';

export interface Taints {
  /** Synchronous where the answer is cached. */
  of(sessionId: string | null | undefined): boolean | Promise<boolean>;
  /** The event to write with the content that taints; undefined when the session is tainted already. */
  marking(sessionId: string, taint: Taint, location: TaintLocation, callId?: string): Marking | undefined;
  /** Writes the taint in a commit of its own. */
  mark(session: Session, taint: Taint): Promise<void>;
}
export interface Marking {
  readonly reads: readonly Pointer[];
  events(at: At): readonly EventDraft[];
  written(): void;
}
type TaintLocation = Pick<EventDraft, 'resource' | 'workspace_id' | 'session_id' | 'task_id' | 'trace_id'>;

/** Caches only "tainted": a session that is clean here may have been tainted by another process a moment ago. */
const REMEMBERED = 50_000;

export function createTaints({ store, log }: { readonly store: Store; readonly log: Log }): Taints {
  const known = new LruMap<string, true>(REMEMBERED);

  function remember(sessionId: string): void {
    known.set(sessionId, true);
  }

  function marking(sessionId: string, taint: Taint, location: TaintLocation, callId?: string): Marking | undefined {
    if (known.has(sessionId)) return undefined;
    const mark = { object: 'taint', id: sessionId };
    const payload = { ...taint, ...(callId && { tool_call_id: callId }) };
    return {
      reads: [mark],
      events: (at) =>
        at.get<Row>(mark.object, mark.id) ? [] : [{ ...location, event: 'vendor.tollbridge.tainted', payload }],
      written: () => remember(sessionId),
    };
  }

  async function look(sessionId: string): Promise<boolean> {
    const marked = (await store.get<Row>('taint', sessionId)) !== undefined;
    if (marked) remember(sessionId);
    return marked;
  }

  return {
    marking,
    of: (sessionId) => (sessionId ? known.has(sessionId) || look(sessionId) : false),
    async mark({ id, workspace_id }, taint) {
      const made = marking(id, taint, { resource: { object: 'session', id }, workspace_id, session_id: id });
      if (!made) return;
      await log.commit({ reads: made.reads, decide: (at) => ({ events: made.events(at) }) });
      made.written();
    },
  };
}
