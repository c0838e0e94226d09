/** The file changes an agent announces for a call. This is its own description: each write is decided when it happens. */
import type { FileChange, Json } from '../../../../src/index.ts';
import { listOf, textOf, within } from '../../shapes.ts';

export function changesIn({ content }: { readonly content?: readonly Json[] }): { changes?: FileChange[] } {
  const changes = listOf(content).flatMap((item): FileChange[] => {
    const path = textOf(within(item, 'path'));
    const after = within(item, 'newText');
    if (within(item, 'type') !== 'diff' || !path || typeof after !== 'string') return [];
    const before = within(item, 'oldText');
    return [{ path, after, before: typeof before === 'string' ? before : null }];
  });
  return changes.length > 0 ? { changes } : {};
}
