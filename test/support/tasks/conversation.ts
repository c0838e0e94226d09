/** Conversations: what is said in them, in order, and what stands in their log. */
import type { Message } from '../../../src/model/resources.ts';
import { all, type Life, said } from './life.ts';

export const wordsOf = (messages: readonly Message[]) =>
  messages.map(({ parts }) => (parts[0] as { text?: string } | undefined)?.text);

export async function append(life: Life, session: string, ...words: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const word of words) {
    ids.push((await life.do('message.append', { session_id: session, message: said(word) })).resource.id);
  }
  return ids;
}

export const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => String(from + at));

export async function sessionEvents(life: Life, session: string) {
  return await all(life.runtime.store.read({ stream: { of: 'session', id: session } }));
}
