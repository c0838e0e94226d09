/** What a person accepts of a tool, at the command line and in the console alike: its definition, and the effect that its server states. */
import { effectOf } from '../../../mappings/mcp.ts';
import { acceptedMetadata } from '../../core/tools/accepted.ts';
import type { PinBody } from '../../core/tools/pins.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { Effect } from '../../model/words.ts';

export function statedEffect({ metadata }: Pick<PinBody, 'metadata'>): Effect {
  return effectOf((metadata.annotations ?? {}) as JsonObject);
}

/** The members of the pin from now on. */
export function acceptedPin(
  definition: PinBody,
  by: string,
): { readonly body: JsonObject; readonly metadata: JsonObject } {
  const { metadata, ...body } = definition;
  return { body, metadata: acceptedMetadata(metadata, statedEffect(definition), by) };
}
