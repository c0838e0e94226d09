/**
 * Records the activity that a peer reports of its work (the activity extension), also what it reported while no stream was open:
 * that is asked for again by our position in the peer's log, and is named as lost when the peer does not tell.
 */
import type { StreamResponse } from '@a2a-js/sdk';
import { EXTENSIONS } from '../../../mappings/a2a.ts';
import { anySignal } from '../../../src/index.ts';
import { remoteDecided } from '../../../src/transport/outbound/remote-decisions.ts';
import { type ActivityUpdate, createActivity, cursorOf, hasActivity } from './activity.ts';
import { isOver, isWaiting } from './end.ts';
import type { UpdateReader } from './read-updates.ts';
import type { RunDeps } from './run.ts';
import { optionsFor } from './send.ts';

type ActivityRun = Pick<RunDeps, 'settings' | 'deps' | 'connection' | 'sink'>;

export function createActivityRecord(
  { settings, deps, connection, sink }: ActivityRun,
  reader: Pick<UpdateReader, 'standing'>,
  over: AbortSignal,
) {
  const activity = createActivity();
  /** Our position in the peer's log, when it reports one. */
  let cursor: string | undefined;
  /** The questions that the peer accepted our answers to. */
  const answered = new Set<string>();
  let releasing: NodeJS.Timeout | undefined;
  let lost = false;
  /** The peer's stream was read to its end. */
  let whole = false;

  /** A call request that is followed by nothing for a while has no question. */
  function releaseLater(): void {
    clearTimeout(releasing);
    releasing = setTimeout(() => {
      if (!over.aborted && !isWaiting(reader.standing)) record(activity.rest()).catch(() => {});
    }, settings.pollMs);
  }

  async function record(updates: readonly ActivityUpdate[]): Promise<void> {
    for (const each of updates) {
      const facts =
        each.do === 'emit'
          ? [each.fact]
          : remoteDecided(settings.name, each.decision, answered.has(each.decision.ask_id ?? ''));
      for (const fact of facts) await sink.emit(fact);
    }
  }

  /** Reads the activity that no stream delivered because none was open: up to this event, or to the end. */
  async function fill(until: AbortSignal, upTo?: string): Promise<void> {
    const { taskId } = reader.standing ?? {};
    if (!taskId || !cursor || !connection.extensions.has(EXTENSIONS.activity)) return;
    const limit = anySignal([until, AbortSignal.timeout(settings.requestMs)]);
    try {
      const options = { ...optionsFor(connection, cursor), signal: limit };
      for await (const said of connection.client.resubscribeTask({ id: taskId, tenant: '' }, options)) {
        await record(activity.take(said));
        cursor = cursorOf(said) ?? cursor;
        if (upTo && cursor >= upTo) return;
      }
    } catch (cause) {
      if (until.aborted) throw cause;
      deps.log.warn({ err: cause, peer: settings.name }, 'a peer did not tell what it did in between');
      lost = true;
    }
  }

  return {
    answered,
    askedAbout: activity.askedAbout,
    get lost() {
      return lost;
    },
    /** Before the reader takes a frame: what came before it, and what it reports itself. */
    async before(said: StreamResponse): Promise<void> {
      const at = cursorOf(said);
      // A stream that was opened again begins later than the last one ended.
      if (said.payload?.$case === 'task' && cursor && at && at > cursor) await fill(over, at);
      cursor = at ?? cursor;
      await record(activity.take(said));
    },
    /** After the reader has taken it: whether a held request has a question is now known, or is known a little later. */
    async after(said: StreamResponse): Promise<void> {
      if (!hasActivity(said) && !isWaiting(reader.standing)) await record(activity.rest());
      if (cursorOf(said) && isOver(reader.standing)) whole = true;
      if (hasActivity(said)) releaseLater();
    },
    /** When the peer's work is over: everything that is still missing. */
    async finish(until: AbortSignal): Promise<void> {
      if (!whole) await fill(until);
      await record(activity.rest());
    },
    close: () => clearTimeout(releasing),
  };
}
