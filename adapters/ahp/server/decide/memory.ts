/** Memory resources that the agent's session may read, by scope and owner, best match first. */
import type { Actor, Bridge, JsonObject, Memory } from '../../../../src/index.ts';

export interface RecallQuery {
  readonly limit: number;
  readonly type?: string;
}

export interface Remembered {
  readonly memory: Memory;
  /** The memory as an AHP fact. */
  readonly fact: JsonObject;
}

/** The most memories searched: an agent waits for the answer. */
const MOST = 2000;

export async function recall(
  bridge: Pick<Bridge, 'recall'>,
  actor: Actor,
  sessionId: string,
  { query, limit, type }: RecallQuery & { readonly query: string },
): Promise<readonly Remembered[]> {
  const wanted = new Set(wordsOf(query));
  const found: (Remembered & { readonly score: number })[] = [];
  let seen = 0;
  for await (const memory of bridge.recall(actor, sessionId)) {
    seen += 1;
    if (seen > MOST) break;
    if (!isOf(memory, type)) continue;
    const content = typeof memory.content === 'string' ? memory.content : JSON.stringify(memory.content);
    const score = wordsOf(content).filter((word) => wanted.has(word)).length;
    if (wanted.size > 0 && score === 0) continue;
    const { source } = memory.provenance;
    const fact = {
      content,
      source: typeof source === 'string' ? source : `memory:${memory.id}`,
      confidence: memory.confidence ?? 1,
    };
    found.push({ memory, score, fact });
  }
  return found.toSorted((a, b) => b.score - a.score).slice(0, limit);
}

/** A requested kind of memory must match. */
function isOf({ metadata }: Memory, type: string | undefined): boolean {
  const kind = metadata.memory_type;
  return typeof kind !== 'string' || type === undefined || type === 'any' || kind === type;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
}
