/**
 * A server over HTTP whose transport is not known: spoken to as servers are today, and as those of 2024-11-05 were when it does not
 * know what to do with that. The first word of a session decides, as the revision after that one has it.
 */
import { asFault } from '../../src/index.ts';
import type { Wire } from './south.ts';
import type { HttpWire } from './south-http.ts';
import type { OpenedWire } from './south-session.ts';

/** What a server that takes no posts there answers to one. */
const NOT_HERE: readonly unknown[] = [400, 404, 405];

/** `older` is asked for once, and only when the newer way is not there. */
export function openEither(newer: HttpWire, older: () => Promise<Wire>): OpenedWire {
  let wire: OpenedWire = newer;
  let settle = () => {};
  const gone = new Promise<void>((resolve) => {
    settle = resolve;
  });
  const watch = (watched: Wire) => void watched.gone.finally(() => watched === wire && settle()).catch(() => {});
  watch(newer);

  return {
    gone,
    get listen() {
      return wire.listen;
    },
    async request(...asked) {
      const [, method] = asked;
      if (wire !== newer || method !== 'initialize') return await wire.request(...asked);
      try {
        return await newer.request(...asked);
      } catch (thrown) {
        if (!NOT_HERE.includes(asFault(thrown).details?.status)) throw thrown;
        const found = await older().catch(() => undefined);
        // What it said to begin with says more about it than what became of a guess.
        if (!found) throw thrown;
        wire = found;
        watch(found);
        await newer.close();
        return await found.request(...asked);
      }
    },
    notify: (frame) => wire.notify(frame),
    respond: (id, outcome) => wire.respond(id, outcome),
    close: () => wire.close(),
  };
}
