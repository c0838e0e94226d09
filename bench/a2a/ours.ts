/**
 * Our side: a whole gateway with log, rules, tokens and receipts, the A2A door, and an agent that says so many pieces. Prints its
 * port, its token and the file of its log; `SIGTERM` ends it in order.
 */
import { settingsOf } from '../../adapters/a2a/config.ts';
import { a2aDoor } from '../../adapters/a2a/server/door.ts';
import type { AgentBackend } from '../../src/ports/index.ts';
import { ANA, openHost, TOKEN } from '../native/side.ts';
import { PIECE, pieces } from './talker.ts';

/** Pieces an agent may have on their way at a time. */
const AT_ONCE = 8;

const talker: AgentBackend = {
  name: 'talker',
  abilities: { resume: false, evidence: 'held' },
  async start({ task }, sink) {
    const work = async () => {
      const message_id = `${task.id}.m`;
      const payload = { message_id, role: 'assistant', text: PIECE };
      // The other side's agent waits for nothing it says; this one never for more than it may have on the way.
      const sent: Promise<void>[] = [];
      for (let count = 0; count < pieces(); count += 1) {
        sent.push(sink.emit({ event: 'vendor.tollbridge.message_delta', payload }));
        if (sent.length === AT_ONCE) await Promise.all(sent.splice(0));
      }
      const text = PIECE.repeat(pieces());
      const message = { id: message_id, role: 'assistant', parts: [{ type: 'text', text, visibility: 'public' }] };
      sent.push(sink.emit({ event: 'agent.message', payload: { message } }));
      await Promise.all(sent);
      return { state: 'COMPLETED' as const };
    };
    return { done: work() };
  },
};

const { runtime, deps, log, listen, close } = await openHost(talker);
const home = { object: 'workspace' as const, body: { name: 'w', root: 'tollbridge://w' } };
await runtime.bridge.submit({ kind: 'resource.create', actor: ANA, body: home });
const door = await a2aDoor(settingsOf({}), deps).open(runtime.bridge);
process.once('SIGTERM', async () => {
  await door.close();
  await close();
  process.exit(0);
});
console.log(`${new URL(await listen()).port} ${TOKEN} ${log}`);
