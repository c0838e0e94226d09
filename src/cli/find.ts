/** Names as people type them: whole, or only their end. Two that end alike are never guessed between. */
import type { AskRecord } from '../model/asks.ts';
import type { Task } from '../model/resources.ts';
import type { Row, Store } from '../ports.ts';
import { trouble } from './complaint.ts';

/** Fewer characters than this could be anything. */
const SHORTEST = 4;
const PAGE = 200;

type Reading = Pick<Store, 'get' | 'list'>;

export async function findTask(store: Reading, id: string): Promise<Task & Row> {
  return await find<Task & Row>(store, 'task', id, 'tollbridge log');
}

export async function findAsk(store: Reading, id: string): Promise<AskRecord & Row> {
  return await find<AskRecord & Row>(store, 'ask', id, 'tollbridge approvals');
}

async function find<T extends Row>(store: Reading, object: string, id: string, shownBy: string): Promise<T> {
  const exact = await store.get<T>(object, id);
  if (exact) return exact;
  const noun = object === 'ask' ? 'question' : object;
  const found = id.length < SHORTEST ? [] : await endingIn<T>(store, object, id.toUpperCase());
  const [first, second] = found;
  if (first && !second) return first;
  if (second) {
    throw trouble(
      'invalid_request',
      `more than one ${noun} ends in ${id}`,
      `give more of its id: ${found.map((row) => row.id).join(', ')}`,
    );
  }
  throw trouble('not_found', `there is no ${noun} ${id}`, `"${shownBy}" shows what there is; --data says where`);
}

async function endingIn<T extends Row>(store: Reading, object: string, end: string): Promise<readonly T[]> {
  const found: T[] = [];
  for (let after: string | undefined; ; ) {
    const page = await store.list<T>({ object, limit: PAGE, newestFirst: true, ...(after && { after }) });
    found.push(...page.filter(({ id }) => id.toUpperCase().endsWith(end)));
    after = page.at(-1)?.id;
    if (page.length < PAGE || found.length > 3 || !after) return found;
  }
}
