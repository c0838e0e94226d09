/**
 * The short rules as written in YAML: a TypeScript type, and a JSON Schema (2020-12) for editors. Written by hand rather than
 * with the schema library, so that a start without a configuration does not load it.
 */

import { ACTION_KINDS } from '../../model/actions.ts';
import type { JsonObject } from '../../model/schema.ts';
import { AUTONOMY_TIERS, EFFECTS, EVIDENCE } from '../../model/words.ts';

/** One text or several, any of which matches. */
export type Texts = string | readonly string[];
export type Scalar = string | number | boolean;
export interface ValueComparison {
  readonly above?: number;
  readonly below?: number;
  readonly contains?: Scalar | readonly Scalar[];
}
export type Condition = Scalar | readonly Scalar[] | ValueComparison | MemberConditions;
export interface MemberConditions {
  readonly [member: string]: Condition;
}

export const THEN_WORDS = ['allow', 'ask', 'block', 'deny', 'defer', 'modify'] as const;
export const RULE_ID = '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$';

export interface RuleTest {
  readonly kind?: Texts;
  readonly effect?: Texts;
  readonly tool?: Texts;
  readonly server?: Texts;
  readonly target?: Texts;
  readonly command?: Texts;
  readonly path?: Texts;
  readonly url?: Texts;
  readonly content?: Texts;
  readonly principal?: Texts;
  readonly door?: Texts;
  readonly tier?: Texts;
  readonly workspace?: Texts;
  readonly session?: Texts;
  readonly tenant?: Texts;
  readonly persona?: Texts;
  readonly persona_id?: Texts;
  readonly evidence?: Texts;
  readonly arguments?: MemberConditions;
  readonly attributes?: MemberConditions;
}
export interface RuleSpec {
  readonly id: string;
  readonly when?: RuleTest;
  readonly unless?: RuleTest;
  readonly then: (typeof THEN_WORDS)[number];
  readonly say?: string;
  readonly to?: Texts;
  readonly expires?: string;
  readonly set?: JsonObject;
  readonly retry_after?: string;
}

const listOf = (item: object) => ({ type: 'array', minItems: 1, items: item });
const texts = (description: string) => {
  const text = { type: 'string', minLength: 1 };
  return { description, anyOf: [text, listOf(text)] };
};
/** A word from a known list; with a `*` in it, any word of the list it matches. */
const words = (known: readonly string[], description: string) => {
  const word = [
    { type: 'string', enum: known },
    { type: 'string', pattern: '[*]' },
  ];
  return { description, anyOf: [...word, listOf({ anyOf: word })] };
};
const members = (description: string) => ({
  description,
  type: 'object',
  minProperties: 1,
  additionalProperties: { type: ['string', 'integer', 'boolean', 'array', 'object'] },
});
const text = (description: string) => ({ type: 'string', description });

export const TEST_PROPERTIES = {
  kind: words(ACTION_KINDS, 'what kind of action it is; fs.* for reading and writing files'),
  effect: words(EFFECTS, 'what it does to the world'),
  tool: texts('name of the tool; * stands for any run of characters'),
  server: texts('who serves the tool'),
  target: texts('path, address or peer it touches'),
  command: texts('the command it runs, whatever the agent calls it; each command of a shell line'),
  path: texts('a file or directory it touches, whatever the agent calls it; */.env is .env anywhere'),
  url: texts('an address it reaches'),
  content: texts('a text it writes or sends'),
  principal: texts('who asks: an id, or agent:*, person:*, service:*, system:*'),
  door: texts('the door it came through'),
  tier: words(AUTONOMY_TIERS, 'how far the agent may go by itself'),
  workspace: texts('id of the workspace'),
  session: texts('id of the session'),
  tenant: texts('id of the tenant'),
  persona: texts('name of the persona'),
  persona_id: texts('id of the persona'),
  evidence: words(
    EVIDENCE,
    'how firmly the gateway had the act: it ran through the gateway, the agent asked first, or it was only reported',
  ),
  arguments: members('arguments of the call, by name'),
  attributes: members('facts known about the action, by name'),
} as const satisfies Record<keyof RuleTest, object>;

const test = { type: 'object', additionalProperties: false, properties: TEST_PROPERTIES };

/** A constant, because tools take an object with a literal `then` for a promise. */
const THEN = 'then';

export const RULE_PROPERTIES = {
  id: { type: 'string', pattern: RULE_ID, description: 'unique; shown whenever the rule decides' },
  when: { ...test, description: 'what it is about; everything, when left out' },
  unless: { ...test, minProperties: 1, description: 'what is excepted' },
  [THEN]: { type: 'string', enum: THEN_WORDS },
  say: text('the reason people and agents are given'),
  to: texts('with ask: who may answer'),
  expires: text('with ask: how long to wait, such as 10m'),
  set: { type: 'object', description: 'with modify: arguments to change; null removes one' },
  retry_after: text('with defer: when to try again, such as 30s'),
} as const satisfies Record<keyof RuleSpec, object>;

/** JSON Schema of a list of rules. */
export const RULES_SCHEMA = {
  type: 'array',
  items: { type: 'object', additionalProperties: false, required: ['id', 'then'], properties: RULE_PROPERTIES },
};
