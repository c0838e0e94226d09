/**
 * A peer that waits for an answer: its question is put to our approvers, the answer is sent, and the peer is watched until it has
 * left the state it waits in. It may be answered on its own side meanwhile; then our question is withdrawn.
 */
import type { Part } from '@a2a-js/sdk';
import { A2AError } from '@a2a-js/sdk/errors';
import { EXTENSIONS } from '../../../../mappings/a2a.ts';
import { anySignal, Fault } from '../../../../src/index.ts';
import { textPart } from '../../translate.ts';
import { isWaiting } from '../end.ts';
import type { Standing, UpdateReader } from '../read-updates.ts';
import type { createActivityRecord } from '../record-activity.ts';
import type { RunDeps } from '../run.ts';
import { digest } from '../send.ts';
import { type ApprovedCall, settle } from './settle.ts';

export interface WaitingPeerDeps {
  readonly run: RunDeps;
  readonly reader: Pick<UpdateReader, 'standing'>;
  readonly activity: Pick<ReturnType<typeof createActivityRecord>, 'askedAbout' | 'answered'>;
  /** Fires when the handoff is over. */
  readonly over: AbortSignal;
  /** A message on the peer's task; resolves when the peer asks again or has ended. */
  send(parts: Part[], messageId: string, taskId: string): Promise<void>;
  look(how?: 'called' | 'time'): Promise<void>;
  /** Until the peer's task may have changed. */
  pause(until: AbortSignal): Promise<'called' | 'time'>;
}

export interface WaitingPeer {
  /** Settles when the peer no longer waits for this answer. */
  ask(standing: Standing): Promise<void>;
  /** Calls that were approved here, and whose end a peer without the activity extension does not report. */
  readonly approved: readonly ApprovedCall[];
}

export function createWaitingPeer({ run, reader, activity, over, send, look, pause }: WaitingPeerDeps): WaitingPeer {
  const { settings, connection, work, sink, deps } = run;
  const { client } = connection;
  const approved: ApprovedCall[] = [];

  /** Asks our approvers; meanwhile the peer may be answered on its own side. */
  async function ask(standing: Standing): Promise<void> {
    const movedOn = new AbortController();
    const watching = watch(standing, anySignal([over, movedOn.signal]));
    const { askedAbout } = activity;
    const settling = settle(standing, { peer: settings.name, sink, withdrawn: movedOn.signal, askedAbout });
    try {
      const next = await Promise.race([settling, watching]);
      if (next === 'moved' || over.aborted) {
        // Our question is withdrawn in the log before the peer's answer is recorded.
        movedOn.abort();
        await settling.catch(() => {});
        return;
      }
      // The answer opens its own stream; two readers would record the same text twice.
      movedOn.abort();
      await watching.catch(() => {});
      if (next.do === 'stop') {
        const limit = { signal: AbortSignal.timeout(settings.cancelMs) };
        await client.cancelTask({ id: standing.taskId, tenant: '', metadata: undefined }, limit).catch(() => {});
        throw new Fault('permission_denied', next.reason);
      }
      if (next.approved && !connection.extensions.has(EXTENSIONS.activity)) approved.push(next.approved);
      if (next.do === 'reply') await reply(next.parts, standing, next.askId);
      else await leave(standing, next.say);
    } finally {
      movedOn.abort();
      await watching.catch(() => {});
    }
  }

  async function reply(parts: Part[], { taskId, mark }: Standing, askId?: string): Promise<void> {
    let refused: unknown;
    // Without its task id the answer would be new work, which no decision allowed.
    if (!taskId) throw new Fault('upstream_unavailable', 'the peer asked without giving the task a name');
    if (askId) activity.answered.add(askId);
    try {
      await send(parts, `${work.task.id}.answer.${digest(mark).slice(7, 19)}`, taskId);
    } catch (cause) {
      // The peer's own side may have answered first; if the peer still waits, it rejects this answer.
      if (!(cause instanceof A2AError)) throw cause;
      refused = cause;
      if (askId) activity.answered.delete(askId);
      await look();
    }
    const { standing } = reader;
    if (!standing || !isWaiting(standing) || standing.mark !== mark) return;
    if (refused) throw refused;
    await leave(standing);
  }

  /** Waits until the peer has left the state it waits in. A peer that does not move by itself is told that it may. */
  async function leave(standing: Standing, say?: string): Promise<void> {
    if (say) {
      await pause(over);
      await look();
      if (reader.standing?.mark === standing.mark && isWaiting(reader.standing)) await nudge(say, standing);
    }
    await watch(standing, over);
  }

  /** A peer that takes no message here goes on when its own side has noticed. */
  async function nudge(say: string, { taskId, mark }: Standing): Promise<void> {
    try {
      await send([textPart(say)], `${work.task.id}.cleared.${digest(mark).slice(7, 19)}`, taskId);
    } catch (cause) {
      if (!(cause instanceof A2AError)) throw cause;
      deps.log.info({ err: cause, peer: settings.name }, 'a peer takes no message about its authorization');
    }
  }

  async function watch(standing: Standing, until: AbortSignal): Promise<'moved'> {
    while (!until.aborted) {
      if (!isWaiting(reader.standing) || reader.standing?.mark !== standing.mark) return 'moved';
      const how = await pause(until);
      if (until.aborted) break;
      await look(how);
      if (!isWaiting(reader.standing) || reader.standing?.mark !== standing.mark) return 'moved';
    }
    return 'moved';
  }

  return { ask, approved };
}
