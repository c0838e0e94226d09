/** The runs door on a story's house, on a port of its own. */
import { settingsOf } from '../../adapters/runs/config.ts';
import { runsDoor } from '../../adapters/runs/server.ts';
import { Fault } from '../../src/model/faults.ts';
import { createHttpHost } from '../../src/wire/http.ts';
import type { World } from './world.ts';

const SECRET = 'a-secret-for-ana';
/** What opens the door, as the header says it after `Bearer`. */
export const PAIR = `ana:${SECRET}`;
/** Nobody here is silent for longer than a story lasts. */
const CONFIG = { stalled: { after_ms: 2_000_000_000 }, stream: { linger_ms: 1 } };

export async function openRunsDoor({ house, ana, clock, logger, personaId }: World) {
  let count = 0;
  const http = createHttpHost({ requestId: () => `req_${++count}`, log: logger, graceMs: 200 });
  const config = { ...CONFIG, ...(personaId && { persona_id: personaId }) };
  const door = await runsDoor(settingsOf(config), {
    log: logger,
    clock,
    ids: { next: (prefix) => `${prefix}_door${++count}` },
    http,
    authenticate: async (bearer) => {
      if (bearer !== SECRET) throw new Fault('unauthenticated', 'nobody has this token');
      return ana;
    },
    jwks: () => house.keyring.jwks(),
    sign: (text) => house.keyring.signer().sign(text),
    secret: async (name) => {
      throw new Fault('not_found', `no secret ${name}`);
    },
  }).open(house.bridge);
  const { url } = await http.listen();
  return {
    url,
    async close() {
      await door.close();
      await http.close();
    },
  };
}
