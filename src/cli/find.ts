/** Ids as people type them: whole, or only their end or beginning. Of several matches none is guessed. */
import type { AskRecord } from '../model/asks.ts';
import type { Task } from '../model/resources.ts';
import type { Row, Store } from '../ports/index.ts';
import { trouble } from './output/error-output.ts';

/** Fewer characters than this match too much. */
const SHORTEST = 4;
const PAGE = 200;

type StoreReader = Pick<Store, 'get' | 'list'>;

export async function findTask(store: StoreReader, id: string): Promise<Task & Row> {
  return await find<Task & Row>(store, 'task', id, 'tollbridge log');
}

export async function findAsk(store: StoreReader, id: string): Promise<AskRecord & Row> {
  return await find<AskRecord & Row>(store, 'ask', id, 'tollbridge approvals');
}

async function find<T extends Row>(store: StoreReader, object: string, id: string, shownBy: string): Promise<T> {
  const exact = await store.get<T>(object, id);
  if (exact) return exact;
  const noun = object === 'ask' ? 'question' : object;
  const found = id.length < SHORTEST ? [] : await alike<T>(store, object, id.toUpperCase());
  const [first, second] = answerable(found);
  if (first && !second) return first;
  if (second) {
    throw trouble(
      'invalid_request',
      `more than one ${noun} is called like ${id}`,
      `give more of its id: ${found.map((row) => row.id).join(', ')}`,
    );
  }
  throw trouble('not_found', `there is no ${noun} ${id}`, `"${shownBy}" shows what there is; --data says where`);
}

async function alike<T extends Row>(store: StoreReader, object: string, part: string): Promise<readonly T[]> {
  const found: T[] = [];
  for (let after: string | undefined; ; ) {
    const page = await store.list<T>({ object, limit: PAGE, newestFirst: true, ...(after && { after }) });
    found.push(...page.filter(({ id }) => isPartOf(id.toUpperCase(), part)));
    after = page.at(-1)?.id;
    if (page.length < PAGE || answerable(found).length > 3 || !after) return found;
  }
}

/** A beginning has to include the kind: `ask_01M7`. */
function isPartOf(id: string, part: string): boolean {
  return id.endsWith(part) || (part.includes('_') && id.startsWith(part));
}

/** Among several questions only an open one can be meant. */
function answerable<T extends Row>(found: readonly T[]): readonly T[] {
  const open = found.filter((row) => row.object === 'ask' && (row as T & { state?: string }).state === 'open');
  return open.length > 0 ? open : found;
}
