/**
 * Frames that do not cross. The sender receives the reason in the protocol's own words; the log of the running task, or of a
 * task of its own, records the refusal. Repetitions are counted, not recorded each time.
 */
import { asFault, asText, type JsonObject, type Logger, vendorEvent } from '../../../../src/index.ts';
import { NOT_A_MESSAGE } from '../../../../src/transport/json-rpc/messages.ts';
import { SYSTEM_ACTOR } from '../from-agent/approved-acts.ts';
import type { SessionKeys } from '../from-editor/session-keys.ts';
import type { Turns } from '../from-editor/turns.ts';
import { encodeError, type Frame, idOf, type Unreadable } from './frame.ts';
import type { Wires } from './pending.ts';

export type Side = 'editor' | 'agent';

export interface RefusedFrames {
  /** `anonymous`: a response with its id would be taken for the response to another request. */
  refuse(side: Side, frame: Frame, reason: string, options?: { code?: number; anonymous?: boolean }): void;
  unreadable(side: Side, frame: Unreadable): void;
  /** Dropped without a response: a response to no pending request. */
  dropped(side: Side, frame: Frame, reason: string): void;
  close(): Promise<void>;
}

export interface RefusedFramesDeps {
  readonly wires: Wires;
  readonly turns: Turns;
  readonly sessionKeys: SessionKeys;
  readonly log: Logger;
}

const BURST_MS = 1_000;
/** The most different refusals kept at a time; further ones appear only in the process log. */
const MOST_KINDS = 64;
/** The session of frames that belong to none. */
export const CONNECTION = 'tollbridge:connection';

export function createRefusedFrames({ wires, turns, sessionKeys, log }: RefusedFramesDeps): RefusedFrames {
  const bursts = new Map<string, { count: number; timer: NodeJS.Timeout }>();
  let writing: Promise<void> = Promise.resolve();
  let closed = false;

  function record(side: Side, frame: Frame, reason: string): void {
    const method = 'method' in frame ? frame.method.slice(0, 200) : null;
    log.warn({ from: side, frame: frame.kind, method, reason }, 'a frame was not passed on');
    const key = `${side}\n${frame.kind}\n${method}\n${reason}`;
    const burst = bursts.get(key);
    if (burst) {
      burst.count += 1;
      return;
    }
    if (closed || bursts.size >= MOST_KINDS) return;
    const payload = { from: side, frame: frame.kind, method, reason };
    const timer = setTimeout(() => {
      const { count = 0 } = bursts.get(key) ?? {};
      bursts.delete(key);
      if (count > 0) write({ ...payload, repeated: count });
    }, BURST_MS);
    timer.unref();
    bursts.set(key, { count: 0, timer });
    write(payload);
  }

  function write(payload: JsonObject): void {
    const noted = { event: vendorEvent('vendor.acp.frame_refused'), payload };
    writing = writing
      .then(async () => {
        const live = turns.all().find((turn) => turn.live && !turn.finished)?.live;
        if (live) return await live.recorder.note(noted);
        const own = await turns.open(await sessionKeys.find(CONNECTION), {
          kind: 'own',
          actor: SYSTEM_ACTOR,
          input: { kind: 'frame_refused' },
          about: { method: asText(payload.method) },
          asked: () => {},
          answered: () => {},
          stopped: (turn) => turn.finish({ state: 'CANCELED' }),
        });
        const { recorder } = await own.begun;
        await recorder.note(noted);
        await recorder.finish(null);
        own.finish({ state: 'COMPLETED', summary: 'a frame was not passed on' });
      })
      .catch((cause) => log.warn({ err: asFault(cause) }, 'a frame that was not passed on could not be written down'));
  }

  function answer(side: Side, id: string, code: number, message: string): void {
    const writer = side === 'editor' ? wires.editor : wires.agent;
    writer.send(encodeError(id, { code, message }));
  }

  return {
    refuse(side, frame, reason, { code = NOT_A_MESSAGE, anonymous = false } = {}) {
      const id = frame.kind === 'request' && !anonymous ? idOf(frame) : 'null';
      answer(side, id, code, reason);
      record(side, frame, reason);
    },
    unreadable(side, frame) {
      answer(side, frame.answers ? 'null' : frame.id, frame.code, frame.reason);
      record(side, frame, frame.reason);
    },
    dropped: record,
    async close() {
      closed = true;
      for (const { timer } of bursts.values()) clearTimeout(timer);
      bursts.clear();
      await writing;
    },
  };
}
