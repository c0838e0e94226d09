/** Shapes written once: a JSON Schema (2020-12) that is also a TypeScript type. */
import { type Static, type TSchema, Type } from './type.ts';

/** A word from a list, or an unknown word: kept as received, matched by nothing. */
export type Open<Word extends string> = Word | (string & {});

/** For received values: a known word documents itself, an unknown one survives. */
export function OpenWord<const Words extends readonly string[]>(words: Words) {
  return Type.Unsafe<Open<Words[number]>>({ type: 'string', minLength: 1, examples: [...words] });
}

/** For values that may be written here: a word from the list and nothing else. */
export function ClosedWord<const Words extends readonly string[]>(words: Words) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: [...words] });
}

/** A list that readers do not change. */
export function List<T extends TSchema>(items: T) {
  return Type.Unsafe<readonly Static<T>[]>({ type: 'array', items });
}

export function Nullable<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T> | null>({ anyOf: [schema, { type: 'null' }] });
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };
export type JsonObject = { readonly [key: string]: Json | undefined };

export const JsonValue = Type.Unsafe<Json>({});
export const OpenObject = Type.Unsafe<JsonObject>({ type: 'object' });
export const Timestamp = Type.Unsafe<string>({ type: 'string', format: 'date-time' });
export const NonEmpty = Type.Unsafe<string>({ type: 'string', minLength: 1 });

/** Ids travel raw in URLs, so this is their whole alphabet. */
export const Id = Type.Unsafe<string>({ type: 'string', pattern: '^[A-Za-z0-9_.-]{1,200}$' });
export const MaybeId = Nullable(Id);
export const MaybeText = Nullable(Type.String());
export const MaybeTime = Nullable(Timestamp);
export const Texts = List(Type.String());
/** Numbers by name. */
export const Amounts = Type.Record(Type.String(), Type.Number());
