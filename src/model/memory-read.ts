/**
 * The log entry for a memory that was given to work: its id, the work it was for, and its state by time and hash. One event for
 * each memory, whichever door handed it out: a replay looks there for the work's dependencies.
 */
import type { Fact } from './commands.ts';
import type { Memory } from './resources.ts';
import type { Json } from './schema.ts';

export function memoryRead(memory: Memory, hash: (value: Json) => string, query?: string): Fact {
  const payload = {
    memory_id: memory.id,
    scope: memory.scope,
    owner_id: memory.owner_id,
    as_of: memory.updated_at,
    content_hash: hash(memory.content as Json),
    ...(query && { query }),
  };
  return { event: 'agent.memory_read', payload };
}
