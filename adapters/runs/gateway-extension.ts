/**
 * Members that the runs API lacks and another gateway needs about a call: the hashes of the requested and the executed arguments,
 * and who decided by which rule. Under one member of our own, which other clients ignore.
 */
import { type CallView, hashOf, type Json, type JsonObject, own } from '../../src/index.ts';
import { summarize } from './server/render/summary.ts';

export function ownWord(
  { arguments: input, requested, decision }: CallView,
  /** The machine-readable outcome, where it is more precise than the API's own, and the output. */
  { ended, output }: { readonly ended?: Json | undefined; readonly output?: Json | undefined },
): { readonly tollbridge?: JsonObject } {
  const input_hash = hashUnlessHidden(input);
  const requested_input_hash = requested === undefined ? undefined : hashUnlessHidden(requested);
  const output_hash = output === undefined ? undefined : hashUnlessHidden(output);
  const word = {
    ...(decision && decisionIn(decision)),
    ...(typeof ended === 'string' && { ended }),
    ...(input_hash && { input_hash }),
    ...(output_hash && { output_hash }),
    ...(requested_input_hash && { requested_input_hash }),
  };
  return Object.keys(word).length > 0 ? { tollbridge: word } : {};
}

/** Who decided, by which rule, why and when. */
function decisionIn(decision: JsonObject): JsonObject {
  const said = ['ask_id', 'by', 'code', 'reason', 'rule_id', 'at'].flatMap((name) => {
    const value = own(decision, name);
    return typeof value === 'string' && value !== '' ? [[name, value] as const] : [];
  });
  return Object.fromEntries(said);
}

/** A hash of something short that the summary hides would give it away. */
function hashUnlessHidden(value: Json | undefined): string | undefined {
  if (value === undefined || summarize(value).stats.fields_redacted > 0) return undefined;
  try {
    return hashOf(value);
  } catch {
    return undefined;
  }
}
