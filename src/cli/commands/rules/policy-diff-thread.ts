/** A thread of `policy diff`: opens the log and the rules, and compares the parts it is given, one after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../../core/clock.ts';
import { projector } from '../../../core/events/projector.ts';
import { asFault } from '../../../model/faults.ts';
import { openStore } from '../../../store/index.ts';
import { rulesFrom } from './policy.ts';
import { comparePart, type LogPart } from './policy-diff-part.ts';
import type { DiffReply, DiffThreadData } from './policy-diff-threads.ts';

const port = parentPort!;
const { location, rules, json } = workerData as DiffThreadData;

const opening = openStore(location, { clock: systemClock, projector });
const begun = Promise.all([opening, rulesFrom(rules)]).then(([store, policies]) => comparePart(store, policies, json));
// Reported with the first part.
begun.catch(() => {});

async function reply(part: LogPart): Promise<DiffReply> {
  try {
    return await (await begun)(part);
  } catch (thrown) {
    const { kind, message } = asFault(thrown);
    return { failed: { kind, message } };
  }
}

async function end(): Promise<void> {
  await begun.catch(() => {});
  port.close();
  await opening.then((store) => store.close()).catch(() => {});
}

let turn = Promise.resolve();
port.on('message', (order: LogPart | 'end') => {
  turn = turn.then(async () => (order === 'end' ? await end() : port.postMessage(await reply(order))));
});
