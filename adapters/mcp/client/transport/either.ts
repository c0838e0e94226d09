/**
 * A server over HTTP whose transport is unknown: addressed with the current transport first, and with that of 2024-11-05 when it does
 * not support it. The first request of a session decides, as revision 2025-03-26 prescribes.
 */
import { asFault } from '../../../../src/index.ts';
import type { OpenedWire } from '../legacy-session.ts';
import type { HttpWire } from './http.ts';
import type { Wire } from './transport.ts';

/** The statuses with which a server refuses a post at this address. */
const NOT_HERE: readonly unknown[] = [400, 404, 405];

/** `older` is called once, and only when the newer transport is not supported. */
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
        // The server's first answer says more about the failure than the result of the fallback.
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
