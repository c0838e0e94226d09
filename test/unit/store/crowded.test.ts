/** Where another process writes too, deciding without the lock is in vain: then batches are decided with it, once each. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { EventDraft } from '../../../src/model/events.ts';
import { createStore } from '../../../src/store/engine/store.ts';
import { openMemory } from '../../../src/store/memory/index.ts';
import { createMemoryLog } from '../../../src/store/memory/log.ts';

const projector = { touches: () => [], apply: () => [] };
const said: EventDraft = {
  event: 'vendor.tollbridge.note',
  resource: { object: 'task', id: 't' },
  payload: {},
};

test('after a batch that was decided in vain, the next are decided with the lock, and without it again later', async () => {
  const memory = createMemoryLog();
  const options = { clock: systemClock, projector };
  const theirs = createStore(openMemory(memory), options);
  const database = openMemory(memory);
  let handedOver = 0;
  const ours = createStore(
    {
      ...database,
      ahead: {
        generation: () => memory.generation,
        takes: () => true,
        async write(writeSet, after) {
          handedOver += 1;
          // The other process is quicker the first time.
          if (handedOver === 1) await theirs.commit({ decide: () => ({ events: [said] }) });
          if (memory.generation !== after) return false;
          await database.commit(() => writeSet);
          return true;
        },
        close: async () => {},
      },
    },
    options,
  );
  let decided = 0;
  const commit = async () => {
    const { events } = await ours.commit({
      decide: () => {
        decided += 1;
        return { events: [said] };
      },
    });
    return events[0]?.sequence;
  };
  expect(await commit()).toBe(2);
  expect({ decided, handedOver }).toEqual({ decided: 2, handedOver: 1 });
  for (let count = 0; count < 15; count += 1) await commit();
  expect({ decided, handedOver }).toEqual({ decided: 17, handedOver: 1 });
  expect(await commit()).toBe(18);
  expect({ decided, handedOver }).toEqual({ decided: 18, handedOver: 2 });
  await ours.close();
  await theirs.close();
});
