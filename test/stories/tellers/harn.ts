/** Stories told in the Agents Protocol over REST, with a reader on the task's event stream. */
import type { JsonObject } from '../../../src/model/schema.ts';
import { type Outside, openOutside } from '../harn-door.ts';
import { play } from '../playing.ts';
import type { Teller } from '../teller.ts';

export const teller: Teller = {
  protocol: 'harn',
  shares: 'log',
  effects: 'here',
  async tell(world, lines, record) {
    let outside: Outside | undefined;
    const told = await play(
      world,
      lines,
      async (_, hear) => {
        const line = await openOutside(world, hear);
        outside = line;
        return {
          async say(frame, { on }) {
            const said = frame as JsonObject;
            if (said.hang_up) line.hangUp();
            else if (on) await line.follow(said, on);
            else await line.request(said);
          },
          close: line.close,
        };
      },
      record,
    );
    return { ...told, read: outside?.read ?? [] };
  },
};
