/** A door that speaks HTTP on a story's gateway, on a port of its own, for the holder of its one token. */
import { Fault } from '../../../src/model/faults.ts';
import type { Deps, FrontDoor } from '../../../src/ports/index.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import type { World } from '../world.ts';

export async function openHttpDoor(
  { runtime, ana, clock, logger }: World,
  token: string,
  door: (deps: Deps) => FrontDoor,
  more: Partial<Deps> = {},
) {
  let count = 0;
  const http = createHttpHost({ requestId: () => `req_${++count}`, log: logger, graceMs: 200 });
  const opened = await door({
    log: logger,
    clock,
    ids: { next: (prefix) => `${prefix}_door${++count}` },
    http,
    authenticate: async (bearer) => {
      if (bearer !== token) throw new Fault('unauthenticated', 'nobody has this token');
      return ana;
    },
    jwks: () => runtime.keyring.jwks(),
    secret: async (name) => {
      throw new Fault('not_found', `no secret ${name}`);
    },
    ...more,
  }).open(runtime.bridge);
  const { url } = await http.listen();
  return {
    url,
    async close() {
      await opened.close();
      await http.close();
    },
  };
}
