/** The rules page of the console completes each word that a rule may hold. */
import { expect, test } from 'vitest';
import { WORDS } from '../../../../src/console/app/pages/rules/words.ts';
import { EFFECTS } from '../../../../src/model/words.ts';
import { RULE_PROPERTIES, TEST_PROPERTIES, THEN_WORDS } from '../../../../src/policy/rules/schema.ts';

test('its words are the members of a rule, its conditions, what it may say, and the effects', () => {
  const members = [...Object.keys(RULE_PROPERTIES), ...Object.keys(TEST_PROPERTIES)].map((name) => `${name}:`);
  const missing = [...members, ...THEN_WORDS, ...EFFECTS].filter((word) => !WORDS.includes(word));
  expect(missing).toEqual([]);
});
