/** Stories told in the Agents Protocol over a WebSocket. Only what has no frame of its own is asked for over REST. */
import type { JsonObject } from '../../../src/model/schema.ts';
import { type Outside, openOutside } from '../harn-door.ts';
import { play } from '../playing.ts';
import type { Teller } from '../teller.ts';

export const teller: Teller = {
  protocol: 'harn-ws',
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
          async say(frame) {
            const said = frame as JsonObject;
            await (said.method ? line.request(said) : line.socket(said));
          },
          close: line.close,
        };
      },
      record,
    );
    // The socket is the session's, and tells of more than its task.
    return { ...told, read: (outside?.read ?? []).filter(({ task_id }) => task_id) };
  },
};
