/** Tells a story in the Agents Protocol, over either of its transports. */
import type { CoreEvent } from '../../../src/model/events.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { play } from '../playing.ts';
import type { Teller } from '../teller.ts';
import { type Outside, openOutside } from './harn.ts';

export interface Way {
  readonly protocol: string;
  say(line: Outside, frame: JsonObject, on: string | undefined): Promise<void> | void;
  /** Of everything that was read, what is the story's. */
  reported?(event: CoreEvent): boolean;
}

export function harnTeller({ protocol, say, reported = () => true }: Way): Teller {
  return {
    protocol,
    shares: 'log',
    effects: 'here',
    async tell(world, lines, record) {
      let outside: Outside | undefined;
      const played = await play(
        world,
        lines,
        async (_, hear) => {
          const line = await openOutside(world, hear);
          outside = line;
          return {
            say: async (frame, { on }) => await say(line, frame as JsonObject, on),
            close: line.close,
          };
        },
        record,
      );
      return { ...played, read: (outside?.read ?? []).filter(reported) };
    },
  };
}
