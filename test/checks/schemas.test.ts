/** Every schema of ours is one: held against the meta-schema here, so that no process has to when it starts. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { adapters } from '../../adapters/index.ts';
import { AskRecord, COMMANDS, Event, RESOURCES, Receipt } from '../../src/index.ts';
import { ConfigShape } from '../../src/runtime/config/shape.ts';

const schemas: readonly (readonly [string, object])[] = [
  ...Object.entries(RESOURCES),
  ...Object.entries(COMMANDS),
  ['ask', AskRecord],
  ['event', Event],
  ['receipt', Receipt],
  ['configuration', ConfigShape],
  ...adapters.flatMap(({ name, parts }) =>
    Object.entries(parts).map(([role, { configSchema }]) => [`${role} of ${name}`, configSchema] as const),
  ),
];

const ajv = new Ajv2020();

test.each(schemas)('%s', (_, schema) => {
  expect([ajv.validateSchema(schema), ajv.errors]).toEqual([true, null]);
});
