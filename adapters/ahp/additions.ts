/**
 * What a harness adds to its yes: facts, context, hints. A decision has no member for them, so they travel as one argument of the act
 * that the harness rewrote, which puts them on record before an agent hears them. Pure.
 */
import { isObject, type Json, type JsonObject, own } from '../../src/index.ts';

const ADDED = 'added';
const MEMBERS: Readonly<Record<string, string>> = {
  memory_recall: 'injected_facts',
  context_perception: 'injected_context',
  reasoning: 'hints',
};

/** The arguments of the act with what the answer to it adds; undefined when it adds nothing. */
export function withAdditions(args: JsonObject, type: string, answer: JsonObject): JsonObject | undefined {
  const member = own(MEMBERS, type);
  const added = member === undefined ? undefined : own(answer, member);
  if (added === undefined || added === null || (Array.isArray(added) && added.length === 0)) return undefined;
  return { ...args, [ADDED]: added };
}

/** What was added, when anything was. */
export function additionsIn(args: JsonObject | undefined): Json | undefined {
  return args?.[ADDED];
}

/** Facts as the protocol spells them; anything else is not one. */
export function factsIn(value: Json | undefined): JsonObject[] {
  return (Array.isArray(value) ? value : []).filter(
    (fact): fact is JsonObject =>
      isObject(fact) &&
      typeof fact.content === 'string' &&
      typeof fact.source === 'string' &&
      typeof fact.confidence === 'number',
  );
}
