/** The runs door on a story's gateway, on a port of its own. */
import { settingsOf } from '../../../adapters/runs/config.ts';
import { runsDoor } from '../../../adapters/runs/server/door.ts';
import type { Deps } from '../../../src/ports/index.ts';
import type { World } from '../world.ts';
import { openHttpDoor } from './http.ts';

const SECRET = 'a-secret-for-ana';
/** What opens the door, as the header says it after `Bearer`. */
export const PAIR = `ana:${SECRET}`;
/** Nobody here is silent for longer than a story lasts; a question nobody answers leaves the agent to go on without the act. */
const CONFIG = {
  unanswered: 'replan' as const,
  classes: { default: {} },
  stalled: { after_ms: 2_000_000_000 },
  stream: { linger_ms: 1 },
};

export async function openRunsDoor(world: World) {
  const { runtime, personaId } = world;
  const settings = settingsOf({ ...CONFIG, ...(personaId && { persona_id: personaId }) });
  const sign: Deps['sign'] = (text) => runtime.keyring.signer().sign(text);
  return await openHttpDoor(world, SECRET, (deps) => runsDoor(settings, deps), { sign });
}
