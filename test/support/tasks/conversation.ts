/** Conversations: what is said in them, in order, and what stands in their log. */
import type { Message } from '../../../src/model/resources.ts';
import { all, says, type TestGateway } from '../gateway/test-gateway.ts';

export const wordsOf = (messages: readonly Message[]) =>
  messages.map(({ parts }) => (parts[0] as { text?: string } | undefined)?.text);

export async function append(gateway: TestGateway, session: string, ...words: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const word of words) {
    ids.push((await gateway.send('message.append', { session_id: session, message: says(word) })).resource.id);
  }
  return ids;
}

export const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => String(from + at));

export async function sessionEvents(gateway: TestGateway, session: string) {
  return await all(gateway.runtime.store.read({ stream: { of: 'session', id: session } }));
}
