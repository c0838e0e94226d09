/**
 * The door as clients behind a load balancer use it: what was not answered, or could not be served, is asked for again with the same key
 * until it is; a stream that breaks off goes on from its last event, wherever the balancer leads.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Broken } from '../broken.ts';
import { type Door, type Frame, Gone, Refused } from '../clients/door.ts';

export interface PatientDoor extends Door {
  /** How often something was asked for again, and how often a stream went on elsewhere. */
  readonly again: { requests: number; streams: number };
}

/** Bad gateway, not now, no answer in time. */
const LATER = [502, 503, 504];
const PAUSE_MS = 40;
const LONGEST_MS = 60_000;

export function patientDoor(door: Door): PatientDoor {
  const again = { requests: 0, streams: 0 };

  async function until<T>(path: string, ask: () => Promise<T>, later: (answer: T) => boolean): Promise<T> {
    for (const deadline = Date.now() + LONGEST_MS; ; ) {
      let why: unknown;
      try {
        const answer = await ask();
        if (!later(answer)) return answer;
        why = answer;
      } catch (cause) {
        if (!(cause instanceof Gone || isLater(cause))) throw cause;
        why = String(cause);
      }
      if (Date.now() > deadline) throw new Broken('the fleet answers', `${path} was not answered for a minute`, why);
      again.requests += 1;
      await sleep(PAUSE_MS);
    }
  }
  const isLater = (cause: unknown) => cause instanceof Refused && LATER.includes(cause.status);
  const never = () => false;

  return {
    again,
    write: (path, key, body) =>
      until(
        path,
        () => door.write(path, key, body),
        ({ status }) => LATER.includes(status),
      ),
    read: (path) => until(path, () => door.read(path), never),
    list: (path) => until(path, () => door.list(path), never),
    async follow(path, after, received, signal) {
      let last = after;
      const hear = (frame: Frame) => {
        // Said in the stream, because it had begun.
        if (frame.event === 'error' && frame.data.includes('"service_unavailable"'))
          throw new Gone(`${path}: ${frame.data}`);
        last = frame.id;
        received(frame);
      };
      while (!signal.aborted) {
        try {
          return await door.follow(path, last, hear, signal);
        } catch (cause) {
          if (!(cause instanceof Gone || isLater(cause))) throw cause;
          again.streams += 1;
          await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
        }
      }
    },
  };
}
