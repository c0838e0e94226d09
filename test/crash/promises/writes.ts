/** What clients asked for: done when the answer said so, done at most once however often they asked, refused only if not done. */
import type { CoreEvent } from '../../../src/model/events.ts';
import { Broken } from '../broken.ts';
import { isAccepted, type Ledger, type WriteKind } from '../clients/ledger.ts';
import type { Evidence } from '../evidence.ts';

export interface WriteCounts {
  readonly acknowledged: number;
  /** Asked for again after a crash because no answer had come. */
  readonly retried: number;
}

export function writesAreDoneOnce(evidence: Evidence, ledger: Ledger): WriteCounts {
  const traces = new Map<string, string[]>();
  for (const event of evidence.events) {
    const repeats = evidence.replays.has(event.task_id ?? '') && event.event !== 'task.submitted';
    if (repeats) continue;
    for (const [nonce, made] of tracesOf(event)) traces.set(nonce, [...(traces.get(nonce) ?? []), made]);
  }
  for (const [what, made] of traces)
    if (what.startsWith('n-') && made.length > 1)
      throw new Broken('a retry does nothing twice', `${what} was done ${made.length} times`, made);
  for (const { kind, nonce, reply, about, path } of ledger.writes) {
    const made = traces.get(nonce) ?? [];
    if (!reply) continue;
    const accepted = isAccepted({ reply });
    if (!accepted && made.length > 0)
      throw new Broken('a retry finds what the first try did', `${path} ${nonce} was done and then refused`, reply);
    if (!accepted) continue;
    if (MAKES.has(kind) && made[0] !== reply.body.id)
      throw new Broken('acknowledged writes are there', `${path} ${nonce} made ${made[0]}, not ${reply.body.id}`);
    if (kind === 'cancel') canceled(evidence, String(about));
    if (kind === 'close' && evidence.sessions.get(String(about))?.state !== 'CLOSED')
      throw new Broken('acknowledged writes are there', `session ${about} was closed and is not`);
  }
  const sent = ledger.writes.filter((write) => write.sent > 1);
  return { acknowledged: ledger.writes.filter(isAccepted).length, retried: sent.length };
}

/** Writes that make something new, so that the answer has to name it. */
const MAKES = new Set<WriteKind>(['persona', 'session', 'task', 'message', 'task-message', 'replay']);

/** Which write an event is the doing of, and what it made. */
function tracesOf({ event, payload, resource }: CoreEvent): [nonce: string, made: string][] {
  switch (event) {
    case 'vendor.tollbridge.resource_created':
      return marked(payload.resource);
    case 'session.created':
      return marked(payload.session);
    case 'task.submitted':
      return marked(payload.task);
    case 'user.message': {
      const { id, parts, metadata } = payload.message as unknown as Said;
      // An answer given as a message leaves two traces: what was said, and the question it closed.
      if (metadata?.nonce) return [[`${metadata.nonce} as a message`, id]];
      const [, nonce] = /^(?:note to self|please stop|by the way) (n-\S+)$/.exec(parts[0]?.text ?? '') ?? [];
      return nonce ? [[nonce, id]] : [];
    }
    case 'vendor.tollbridge.ask_closed':
      return [[String(payload.reason ?? payload.answer), String(payload.ask_id)]];
    case 'user.cancel_requested':
      return [[String(payload.reason), resource.id]];
    default:
      return [];
  }
}

interface Said {
  readonly id: string;
  readonly parts: readonly { readonly text?: string }[];
  readonly metadata?: { readonly nonce?: string };
}

function marked(made: unknown): [string, string][] {
  const { id, metadata } = made as { id: string; metadata?: { nonce?: string } };
  return metadata?.nonce ? [[metadata.nonce, id]] : [];
}

function canceled({ tasks }: Evidence, task: string): void {
  const status = tasks.get(task)?.status;
  if (status !== 'CANCELED') throw new Broken('acknowledged writes are there', `${task} was canceled and is ${status}`);
}
