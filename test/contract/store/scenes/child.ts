/** The other process in the store's tests: opens the same file and does what its arguments say. */

import { once } from 'node:events';
import type { EventDraft } from '../../../../src/model/events.ts';
import { createSqliteStore } from '../../../../src/store/sqlite/index.ts';
import { contractProjector } from '../projector.ts';
import { ALWAYS_ELSEWHERE, compiledStore } from './sqlite-home.ts';

const [what = '', path = '', argument = ''] = process.argv.slice(2);
const clock = { now: () => new Date().toISOString() };
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const options = { path, clock, projector: contractProjector, lockTimeoutMs: 20_000 };
const open = () => createSqliteStore(options);
const event = (task: string): EventDraft => ({
  event: 'vendor.tollbridge.note',
  resource: { object: 'task', id: task },
  payload: { by: process.pid },
  task_id: task,
  session_id: 'session_1',
});

switch (what) {
  /** Several writers at once, for ever; says what it was promised. */
  case 'write':
  case 'write elsewhere': {
    const store =
      what === 'write'
        ? await open()
        : await (await compiledStore())({ ...options, concurrentWriters: ALWAYS_ELSEWHERE });
    const writer = async (task: string): Promise<never> => {
      while (true) {
        const { events } = await store.commit({ decide: () => ({ events: [event(task), event(task)] }) });
        say(events.map(({ id }) => id).join(' '));
      }
    };
    await Promise.all(['task_1', 'task_2', 'task_3', 'task_4', 'task_5'].map(writer));
    break;
  }
  /** Opens when told to, appends as many as told, one after the other. */
  case 'append': {
    say('ready');
    await once(process.stdin, 'data');
    const store = await open();
    for (let n = 0; n < Number(argument); n++) await store.commit({ decide: () => ({ events: [event('task_1')] }) });
    await store.close();
    say('done');
    process.exit();
    break;
  }
  /** Takes a lease and keeps it until it is killed. */
  case 'lease': {
    const store = await open();
    say((await store.lease(argument)) ? 'held' : 'refused');
    setInterval(() => undefined, 1_000);
    break;
  }
  default:
    throw new Error(`what is ${what}?`);
}
