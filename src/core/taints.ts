/**
 * Sessions that have read what others wrote. Whatever such a session wants next may be somebody else's wish, and rules may say so:
 * `attributes: { tainted: true }`. The mark is in the log with where it came from, before whoever reads has read; it is never
 * taken off, and a session made from a marked one is marked.
 */
import type { Taint } from '../model/actions.ts';
import type { EventDraft } from '../model/events.ts';
import type { Pointer, Session } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import type { At, Row, Store } from '../ports.ts';
import type { Log } from './log.ts';

export interface Taints {
  /** An answer at once where it is known. */
  of(sessionId: string | null | undefined): boolean | Promise<boolean>;
  /** What has to be written with what brought the mark; undefined when the session has it already. */
  marking(sessionId: string, taint: Taint, place: Place, callId?: string): Marking | undefined;
  /** The same by itself. */
  mark(session: Session, taint: Taint): Promise<void>;
}
export interface Marking {
  readonly reads: readonly Pointer[];
  events(at: At): readonly EventDraft[];
  written(): void;
}
type Place = Pick<EventDraft, 'resource' | 'workspace_id' | 'session_id' | 'task_id' | 'trace_id'>;

/** Only ever "yes": a session that is clean here may have been marked elsewhere a moment ago. */
const REMEMBERED = 50_000;

export function createTaints({ store, log }: { readonly store: Store; readonly log: Log }): Taints {
  const known = new Set<string>();

  function remember(sessionId: string): void {
    known.add(sessionId);
    const [oldest] = known;
    if (known.size > REMEMBERED && oldest !== undefined) known.delete(oldest);
  }

  function marking(sessionId: string, taint: Taint, place: Place, callId?: string): Marking | undefined {
    if (known.has(sessionId)) return undefined;
    const mark = { object: 'taint', id: sessionId };
    const payload = { ...taint, ...(callId && { tool_call_id: callId }) } as unknown as JsonObject;
    return {
      reads: [mark],
      events: (at) =>
        at.get<Row>(mark.object, mark.id) ? [] : [{ ...place, event: 'vendor.tollbridge.tainted', payload }],
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
