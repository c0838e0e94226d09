/** Read-only memory: item by item, or as files that a person can read. Uses the gateway's own scopes. */
import type { Actor, Bridge, Json, Memory, Row } from '../../../../src/index.ts';
import type { Call, Reply, RouteContext } from '../call.ts';
import { RunsRefusal, refusing } from '../refusal.ts';

interface Filter {
  readonly workspace: string | undefined;
  readonly subject: string | undefined;
  readonly status: string | undefined;
  /** Memory of a persona or a session is left out unless asked for. */
  readonly harness: boolean;
}

interface Item {
  readonly id: string;
  readonly content: Json;
  readonly status: string;
  readonly workspace_id: string | null;
  readonly subject_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

const MOST = 200;
/** Memory with any other scope, a persona's or a session's, belongs to the harness. */
const SHARED = new Set(['tenant', 'workspace']);

export function createMemory({ bridge, deps }: RouteContext) {
  async function items(actor: Actor, filter: Filter): Promise<readonly Item[]> {
    const now = deps.clock.now();
    const found: Item[] = [];
    for await (const memory of all(bridge, actor)) {
      if (memory.visibility === 'receipt_only' || !(filter.harness || SHARED.has(memory.scope))) continue;
      const item = toItem(memory, now);
      const wanted =
        (filter.workspace === undefined || item.workspace_id === filter.workspace) &&
        (filter.subject === undefined || item.subject_id === filter.subject) &&
        (filter.status === undefined || item.status === filter.status);
      if (wanted) found.push(item);
    }
    return found;
  }

  return {
    async list(call: Call): Promise<Reply> {
      const filter = readFilter(call.query);
      const limit = whole(call.query, 'limit', 1, MOST) ?? 50;
      const offset = whole(call.query, 'offset', 0, Number.MAX_SAFE_INTEGER) ?? 0;
      const found = await items(call.actor, filter);
      return { body: { items: found.slice(offset, offset + limit), limit, offset } };
    },

    async get({ actor, id, query }: Call): Promise<Reply> {
      const embedding = truth(query, 'include_embedding');
      return await refusing({ not_found: 'MEMORY_ITEM_NOT_FOUND' }, async () => {
        const memory = await bridge.view<Memory & Row>(actor, 'memory', id);
        if (memory.visibility === 'receipt_only') throw new RunsRefusal('MEMORY_ITEM_NOT_FOUND');
        const item = toItem(memory, deps.clock.now());
        return { body: { ...item, ...(embedding && { embedding: memory.embedding_ref ?? null }) } };
      });
    },

    async export({ actor, query }: Call): Promise<Reply> {
      const files = (await items(actor, readFilter(query))).map((item) => ({
        path: `memory/${item.workspace_id ?? 'shared'}/${item.id}.md`,
        content: toMarkdown(item),
      }));
      return { body: { files } };
    },
  };
}

async function* all(bridge: Bridge, actor: Actor): AsyncGenerator<Memory> {
  let after: string | undefined;
  do {
    const page = await bridge.list<Memory & Row>(actor, { object: 'memory', limit: MOST, ...(after && { after }) });
    yield* page.data;
    after = page.next;
  } while (after);
}

function toItem(memory: Memory, now: string): Item {
  const { status, subject_id, workspace_label } = memory.metadata;
  const expired = typeof memory.expires_at === 'string' && memory.expires_at <= now;
  return {
    id: memory.id,
    content: memory.content,
    status: expired ? 'expired' : typeof status === 'string' ? status : 'active',
    workspace_id: typeof workspace_label === 'string' ? workspace_label : (memory.workspace_id ?? null),
    subject_id: typeof subject_id === 'string' ? subject_id : null,
    created_at: memory.created_at,
    updated_at: memory.updated_at,
  };
}

function toMarkdown({ content, ...about }: Item): string {
  const head = Object.entries(about).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  const text = typeof content === 'string' ? content : `\`\`\`json\n${JSON.stringify(content, undefined, 2)}\n\`\`\``;
  return `---\n${head.join('\n')}\n---\n\n${text}\n`;
}

function readFilter(query: URLSearchParams): Filter {
  return {
    workspace: query.get('workspace_id') ?? undefined,
    subject: query.get('subject_id') ?? undefined,
    status: query.get('status') ?? undefined,
    harness: truth(query, 'include_harness'),
  };
}

function truth(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  if (text !== null && text !== 'true' && text !== 'false') throw new RunsRefusal('MEMORY_QUERY_PARAMS_INVALID');
  return text === 'true';
}

function whole(query: URLSearchParams, name: string, least: number, most: number): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || value < least || value > most) throw new RunsRefusal('MEMORY_QUERY_PARAMS_INVALID');
  return value;
}
