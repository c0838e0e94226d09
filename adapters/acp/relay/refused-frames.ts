/**
 * Frames that do not cross. Their sender hears why, in the protocol's own words; the log of the work that runs, or one of its
 * own where none runs, says what was turned back. The same again and again is counted, not written each time.
 */
import { asFault, asText, type JsonObject, type Logger } from '../../../src/index.ts';
import { KEEPER } from './approvals.ts';
import { encodeError, type Frame, idOf, NOT_A_FRAME, type Unreadable } from './frame.ts';
import type { Places } from './places.ts';
import type { Turns } from './turns.ts';
import type { Wires } from './wires.ts';

export type Side = 'editor' | 'agent';

export interface RefusedFrames {
  /** `anonymous`: an answer under its id would be taken for the answer to another request. */
  refuse(side: Side, frame: Frame, reason: string, options?: { code?: number; anonymous?: boolean }): void;
  unreadable(side: Side, frame: Unreadable): void;
  /** It is dropped without an answer: a response that no request waits for. */
  dropped(side: Side, frame: Frame, reason: string): void;
  close(): Promise<void>;
}

export interface RefusedFramesDeps {
  readonly wires: Wires;
  readonly turns: Turns;
  readonly places: Places;
  readonly log: Logger;
}

const BURST_MS = 1_000;
/** So many different refusals are kept apart at a time; more than that are only in the process's own log. */
const MOST_KINDS = 64;
/** The session of what belongs to none. */
export const CONNECTION = 'tollbridge:connection';

export function createRefusedFrames({ wires, turns, places, log }: RefusedFramesDeps): RefusedFrames {
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
    const noted = { event: 'vendor.acp.frame_refused', payload };
    writing = writing
      .then(async () => {
        const live = turns.all().find((turn) => turn.live && !turn.finished)?.live;
        if (live) return await live.scribe.note(noted);
        const own = await turns.open(await places.find(CONNECTION), {
          kind: 'own',
          actor: KEEPER,
          input: { kind: 'frame_refused' },
          about: { method: asText(payload.method) },
          asked: () => {},
          answered: () => {},
          stopped: (turn) => turn.finish({ state: 'CANCELED' }),
        });
        const { scribe } = await own.begun;
        await scribe.note(noted);
        await scribe.finish(null);
        own.finish({ state: 'COMPLETED', summary: 'a frame was not passed on' });
      })
      .catch((cause) => log.warn({ err: asFault(cause) }, 'a frame that was not passed on could not be written down'));
  }

  function answer(side: Side, id: string, code: number, message: string): void {
    const writer = side === 'editor' ? wires.editor : wires.agent;
    writer.send(encodeError(id, { code, message }));
  }

  return {
    refuse(side, frame, reason, { code = NOT_A_FRAME, anonymous = false } = {}) {
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
