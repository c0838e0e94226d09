/** The output of a reader: facts to record, in order. */
import type { CoreEvent, Fact, JsonObject, NewArtifact } from '../../../src/index.ts';
import { objectOf, within } from '../shapes.ts';

/** A fact to record, at once or as soon as its bytes are stored as an artifact. */
export type RecordedFact = Fact | { readonly file: NewArtifact; readonly fact?: (artifactId: string) => Fact };

/** The update as received, for doors of the same protocol. Left out where the fact contains everything. */
export function updateFact(update: JsonObject, plain = false): { ext?: JsonObject } {
  return plain ? {} : { ext: { acp: { update } } };
}

/** The update this event was made from, when it arrived over this protocol. */
export function cameAs(event: CoreEvent): JsonObject | undefined {
  return objectOf(within(event.ext, 'acp', 'update'));
}
