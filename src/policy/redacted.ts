/** Recognizes values that were redacted before a record was written; such values cannot be judged again. */
import type { Json } from '../model/schema.ts';

export function isRedacted(text: string): boolean {
  return text.startsWith('[redacted');
}

/** True when a redacted text is anywhere in the value. Walks without recursion: records come from outside. */
export function holdsRedacted(root: Json): boolean {
  const open: unknown[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === 'string' && isRedacted(value)) return true;
    if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) open.push(item ?? null);
  }
  return false;
}
