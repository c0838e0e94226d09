/**
 * Tools that a person has accepted. Until then the hints of a server that is not trusted count for nothing, and the effect of its
 * tools is unknown. A person who accepts a definition has seen its hints, so the effect they state counts, for exactly this
 * definition: a changed one is unknown again. It is kept with the pin, in the log, where every process finds it.
 */
import type { Skill } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { EFFECTS, type Effect } from '../../model/words.ts';
import type { Row, Store } from '../../ports/index.ts';
import type { Context } from '../context.ts';
import type { FoundTool } from './catalog.ts';
import { pinId } from './pins.ts';
import { ownDefinition } from './upstream-definition.ts';

/** Synchronous where the effect is known without a person. */
export type EffectOfTool = (
  found: Pick<FoundTool, 'skill' | 'server' | 'effect' | 'pinned' | 'definition'>,
) => Effect | Promise<Effect>;

export function createAcceptedEffects(store: Pick<Store, 'get'>, hash: Context['hash']): EffectOfTool {
  return ({ skill, server, effect, pinned, definition }) => {
    if (!pinned || effect !== 'unknown') return effect;
    const id = pinId(hash, server, ownDefinition(skill).name);
    return store.get<Skill & Row>('skill', id).then((pin) => (pin && acceptedEffect(pin, definition)) ?? effect);
  };
}

/** The effect that a person accepted for this definition. */
export function acceptedEffect(
  { version, metadata }: Pick<Skill, 'version' | 'metadata'>,
  definition: string,
): Effect | undefined {
  const { effect } = (metadata.accepted ?? {}) as { readonly effect?: unknown };
  return version === definition ? EFFECTS.find((each) => each === effect) : undefined;
}

/** The metadata of an accepted pin. */
export function acceptedMetadata({ pending: _, ...metadata }: JsonObject, effect: Effect, by: string): JsonObject {
  return { ...metadata, accepted: { effect, by } };
}
