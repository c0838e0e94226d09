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
  const reading = (async () => {
    for await (const line of readLines(output, { limit: 32 * MIB })) hear(JSON.parse(line) as Json);
  })();
  return {
    say: (frame: Json) => void input.write(`${JSON.stringify(frame)}\n`),
    async hangUp() {
      input.end();
      await served;
      output.end();
      await reading;
    },
  };
}

const open: OpenWire = async (world, hear) => {
  let line = connect(world, hear);
  return {
    async say(frame) {
      const { hang_up, connect: again } = frame as JsonObject;
      if (hang_up) await line.hangUp();
      else if (again) line = connect(world, hear);
      else line.say(frame);
    },
    close: () => line.hangUp(),
  };
};

export const teller: Teller = {
  protocol: 'acp',
  shares: 'log',
  effects: 'here',
  tell: (world, lines, record) => play(world, lines, open, record),
};
