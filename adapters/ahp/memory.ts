/** What the house remembers, for an agent that asks: Memory resources the caller may see, best match first. */
import type { Actor, Bridge, JsonObject, Memory, Row } from '../../src/index.ts';

export interface Wanted {
  readonly limit: number;
  readonly type?: string;
}

export type Remembered = readonly { readonly id: string; readonly fact: JsonObject }[];

/** More than this is not searched: an agent waits for the answer. */
const MOST = 2000;

export async function recall(
  bridge: Bridge,
  actor: Actor,
  { query, limit, type, now }: Wanted & { readonly query: string; readonly now: string },
): Promise<Remembered> {
  const wanted = new Set(wordsOf(query));
  const found: { id: string; score: number; fact: JsonObject }[] = [];
  let after: string | undefined;
  for (let seen = 0; seen < MOST; ) {
    const page = await bridge.list<Memory & Row>(actor, { object: 'memory', limit: 200, ...(after && { after }) });
    for (const memory of page.data) {
      if (!mayTell(memory, type, now)) continue;
      const content = typeof memory.content === 'string' ? memory.content : JSON.stringify(memory.content);
      const score = wordsOf(content).filter((word) => wanted.has(word)).length;
      if (wanted.size > 0 && score === 0) continue;
      const { source } = memory.provenance;
      const fact = {
        content,
        source: typeof source === 'string' ? source : `memory:${memory.id}`,
        confidence: memory.confidence ?? 1,
      };
      found.push({ id: memory.id, score, fact });
    }
    seen += page.data.length;
    after = page.next;
    if (!after) break;
  }
  return found
    .toSorted((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ id, fact }) => ({ id, fact }));
}

/** What has expired or is meant for receipts is not told, and a kind of memory that was named has to match. */
function mayTell({ expires_at, visibility, metadata }: Memory, type: string | undefined, now: string): boolean {
  if (expires_at && expires_at <= now) return false;
  if (visibility === 'receipt_only') return false;
  const kind = metadata.memory_type;
  return typeof kind !== 'string' || type === undefined || type === 'any' || kind === type;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
}
