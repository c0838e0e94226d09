/** The short rules as people write them in YAML, for editors and for our own types. */
import { type Static, Type } from 'typebox';
import { ACTION_KINDS } from '../model/actions.ts';
import { ClosedWord, type JsonObject, OpenObject } from '../model/schema.ts';
import { AUTONOMY_TIERS, EFFECTS, EVIDENCE } from '../model/words.ts';

const Optional = Type.Optional;

/** One text or several, any of which will do. `*` stands for any run of characters. */
const Texts = (description: string) =>
  Type.Unsafe<string | readonly string[]>({
    description,
    anyOf: [
      { type: 'string', minLength: 1 },
      { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } },
    ],
  });
/** From a known list; with a `*` in it, whichever of the list it matches. */
const Words = (words: readonly string[], description: string) => {
  const word = {
    anyOf: [
      { type: 'string', enum: [...words] },
      { type: 'string', pattern: '[*]' },
    ],
  };
  return Type.Unsafe<string | readonly string[]>({
    description,
    anyOf: [...word.anyOf, { type: 'array', minItems: 1, items: word }],
  });
};

export type Scalar = string | number | boolean;
export interface Comparison {
  readonly above?: number;
  readonly below?: number;
  readonly contains?: Scalar | readonly Scalar[];
}
export type Wanted = Scalar | readonly Scalar[] | Comparison | { readonly [member: string]: Wanted };
const Members = (description: string) =>
  Type.Unsafe<{ readonly [member: string]: Wanted }>({
    description,
    type: 'object',
    minProperties: 1,
    additionalProperties: { type: ['string', 'integer', 'boolean', 'array', 'object'] },
  });

export const RuleTest = Type.Object(
  {
    kind: Optional(Words(ACTION_KINDS, 'what kind of action it is; fs.* for reading and writing files')),
    effect: Optional(Words(EFFECTS, 'what it does to the world')),
    tool: Optional(Texts('name of the tool')),
    server: Optional(Texts('who serves the tool')),
    target: Optional(Texts('path, address or peer it touches')),
    principal: Optional(Texts('who asks: an id, or agent:*, person:*, service:*, system:*')),
    door: Optional(Texts('the door it came through')),
    tier: Optional(Words(AUTONOMY_TIERS, 'how far the agent may go by itself')),
    workspace: Optional(Texts('id of the workspace')),
    session: Optional(Texts('id of the session')),
    tenant: Optional(Texts('id of the tenant')),
    persona: Optional(Texts('name of the persona')),
    persona_id: Optional(Texts('id of the persona')),
    evidence: Optional(Words(EVIDENCE, 'how firmly we have it: held, asked, observed')),
    arguments: Optional(Members('arguments of the call, by name')),
    attributes: Optional(Members('facts known about the action, by name')),
  },
  { additionalProperties: false },
);
export type RuleTest = Static<typeof RuleTest>;

export const THEN_WORDS = ['allow', 'ask', 'block', 'deny', 'defer', 'modify'] as const;

export const RuleSpec = Type.Object(
  {
    id: Type.Unsafe<string>({
      type: 'string',
      pattern: '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$',
      description: 'unique; shown whenever the rule decides',
    }),
    when: Optional(RuleTest),
    unless: Optional(RuleTest),
    // biome-ignore lint/suspicious/noThenProperty: the word people write in rules
    then: ClosedWord(THEN_WORDS),
    say: Optional(Type.Unsafe<string>({ type: 'string', description: 'the reason people and agents are given' })),
    to: Optional(Texts('with ask: who may answer')),
    expires: Optional(Type.Unsafe<string>({ type: 'string', description: 'with ask: how long to wait, such as 10m' })),
    set: Optional(
      Type.Unsafe<JsonObject>({ ...OpenObject, description: 'with modify: arguments to change; null removes one' }),
    ),
    retry_after: Optional(
      Type.Unsafe<string>({ type: 'string', description: 'with defer: when to try again, such as 30s' }),
    ),
  },
  { additionalProperties: false },
);
export type RuleSpec = Static<typeof RuleSpec>;

/** JSON Schema of a list of rules. */
export const RULES_SCHEMA = Type.Array(RuleSpec);
