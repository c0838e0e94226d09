/** What our task wants, as a peer hears it. */
import type { Part } from '@a2a-js/sdk';
import type { Json, JsonObject, Part as OurPart } from '../../src/index.ts';
import { dataPart, textPart, toWireParts } from './translate.ts';

/** A message says its parts; any other input is data. Files stay here: a peer is told that there was one. */
export function toWireInput(input: JsonObject): Part[] {
  if (!Array.isArray(input.parts)) return [dataPart(input as Json)];
  const parts = toWireParts(input.parts as unknown as OurPart[], (id) =>
    textPart(`[a file that was not handed over: ${id}]`),
  );
  return parts.length > 0 ? parts : [textPart('')];
}
