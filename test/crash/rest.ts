/** Everything asked for is asked for again, every question is answered, and all work has to reach its end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal } from '../../src/model/words.ts';
import { Broken } from './broken.ts';
import { answerTo, openAsks } from './clients/answers.ts';
import type { Client } from './clients/client.ts';
import type { Door } from './clients/door.ts';
import type { Ledger } from './clients/ledger.ts';
import type { Chance } from './random.ts';

export interface RestDeps {
  readonly ledger: Ledger;
  readonly clients: readonly Client[];
  readonly chance: Chance;
}

const LONGEST_MS = 90_000;

export async function comeToRest(door: Door, { ledger, clients, chance }: RestDeps): Promise<void> {
  await Promise.all(clients.map((client) => client.settle(door)));
  const deadline = Date.now() + LONGEST_MS;
  for (let count = 0; ; ) {
    const asks = await openAsks(door, ledger);
    for (const ask of asks) {
      const write = ledger.want(answerTo(ask, `n-last-${count}`, chance));
      count += 1;
      write.sent += 1;
      write.reply = await door.write(write.path, write.nonce, write.body);
    }
    const left = (await door.list('/v1/tasks')).filter(({ status }) => !isTerminal(String(status)));
    if (asks.length === 0 && left.length === 0) return;
    if (Date.now() > deadline)
      throw new Broken('every accepted task reaches an end', `${left.length} have not`, left.slice(0, 5));
    await sleep(100);
  }
}
