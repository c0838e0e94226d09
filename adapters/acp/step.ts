/** What a reading comes to: things to write down, in order. */
import type { CoreEvent, Fact, JsonObject, NewArtifact } from '../../src/index.ts';
import { objectOf, within } from './shapes.ts';

/** Something to write down, at once or as soon as bytes have become an artifact. */
export type Step = Fact | { readonly file: NewArtifact; readonly fact?: (artifactId: string) => Fact };

/** What came, for doors of the same protocol. Left out where the fact says all there is. */
export function heard(update: JsonObject, plain = false): { ext?: JsonObject } {
  return plain ? {} : { ext: { acp: { update } } };
}

/** The update this event was made from, when it came over this protocol. */
export function cameAs(event: CoreEvent): JsonObject | undefined {
  return objectOf(within(event.ext, 'acp', 'update'));
}
