/**
 * Stories rendered in the Agent Client Protocol: an editor at our door, over lines. `{"hang_up": true}` ends its line and
 * `{"connect": true}` begins another; everything else it says is a frame.
 */
import { PassThrough } from 'node:stream';
import { settingsOf } from '../../../adapters/acp/config.ts';
import { serveStreams } from '../../../adapters/acp/server/stdio.ts';
import type { Json, JsonObject } from '../../../src/model/schema.ts';
import { readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { type Hear, type OpenWire, play } from '../playing.ts';
import type { Teller } from '../teller.ts';
import type { World } from '../world.ts';

const MIB = 1024 * 1024;

function connect({ runtime, ana, personaId, logger }: World, hear: Hear) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  // An editor that lost its line comes back; its work goes on without it.
  const config = { on_disconnect: 'continue' as const, ...(personaId && { persona: personaId }) };
  const served = serveStreams(settingsOf(config), { log: logger }, runtime.bridge, { actor: ana, input, output });
  let gone = false;
  const reading = (async () => {
    for await (const line of readLines(output, { limit: 32 * MIB })) if (!gone) hear(JSON.parse(line) as Json);
  })();
  return {
    say: (frame: Json) => void input.write(`${JSON.stringify(frame)}\n`),
    /** The door goes on until the work of this line has ended. */
    hangUp() {
      gone = true;
      input.end();
    },
    async close() {
      input.end();
      await served;
      output.end();
      await reading;
    },
  };
}

const open: OpenWire = async (world, hear) => {
  let line = connect(world, hear);
  const lines = [line];
  return {
    async say(frame) {
      const { hang_up, connect: again } = frame as JsonObject;
      if (hang_up) line.hangUp();
      else if (again) {
        line = connect(world, hear);
        lines.push(line);
      } else line.say(frame);
    },
    async close() {
      for (const each of lines) await each.close();
    },
  };
};

export const teller: Teller = {
  protocol: 'acp',
  shares: 'log',
  effects: 'here',
  tell: (world, lines, record) => play(world, lines, open, record),
};
