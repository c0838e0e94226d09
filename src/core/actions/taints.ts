/**
 * Tainted sessions: sessions that have read untrusted content. Later acts of such a session may be that content's instructions, and
 * rules can match this: `attributes: { tainted: true }`. The taint is recorded with its source before the content is delivered, and once
 * more when content of a second source is; it is never removed, and a session forked from a tainted one is tainted.
 */

import type { Taint } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import type { Pointer, Session } from '../../model/resources.ts';
import { LruMap } from '../../model/values/lru-map.ts';
import type { At, Store } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';
import type { TaintRow } from '../events/rows.ts';

export interface Taints {
  /** Synchronous where the answer is cached. */
  of(sessionId: string | null | undefined): boolean | Promise<boolean>;
  /** The event to write with the content that taints; undefined when the session is known to have read such content. */
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
/** Instead of a source: there was more than one. */
const SEVERAL = 'several';

export function createTaints({ store, log }: { readonly store: Store; readonly log: Log }): Taints {
  const known = new LruMap<string, string>(REMEMBERED);

  function marking(sessionId: string, taint: Taint, location: TaintLocation, callId?: string): Marking | undefined {
    const source = sourceOf(taint);
    const before = known.get(sessionId);
    if (before === SEVERAL || before === source) return undefined;
    const mark = { object: 'taint', id: sessionId };
    const payload = { ...taint, ...(callId && { tool_call_id: callId }) };
    let now = source;
    return {
      reads: [mark],
      events(at) {
        const found = recorded(at.get<TaintRow>(mark.object, mark.id));
        now = found === undefined || found === source ? source : SEVERAL;
        return found === now ? [] : [{ ...location, event: 'vendor.tollbridge.tainted', payload }];
      },
      written: () => known.set(sessionId, now),
    };
  }

  async function look(sessionId: string): Promise<boolean> {
    const marked = recorded(await store.get<TaintRow>('taint', sessionId));
    if (marked !== undefined) known.set(sessionId, marked);
    return marked !== undefined;
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

function recorded(row: TaintRow | undefined): string | undefined {
  return row && (row.several ? SEVERAL : sourceOf(row.from));
}

function sourceOf({ server, what, target }: Taint): string {
  return JSON.stringify([server, what, target ?? null]);
}
