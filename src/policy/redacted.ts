/** Recognizes values that were redacted before a record was written; such values cannot be judged again. */
import type { Json } from '../model/schema.ts';

export function isRedacted(text: string): boolean {
  return text.startsWith('[redacted');
}

/** True when a redacted text is anywhere in the value. */
export function holdsRedacted(root: Json): boolean {
  return holdsText(root, isRedacted);
}

/**
 * False when nothing in the act can be a redacted text, nor in what is read from its texts: those may be JSON themselves, with
 * escaped characters. Most acts hold none, and this is far quicker than finding out which values the rules look at.
 */
export function mayHoldRedacted(act: object): boolean {
  return holdsText(act, (text) => text.includes('[redacted') || text.includes('\\u'));
}

/** Walks without recursion: records come from outside. */
function holdsText(root: unknown, test: (text: string) => boolean): boolean {
  const open: unknown[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === 'string' && test(value)) return true;
    if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) open.push(item ?? null);
  }
  return false;
}
