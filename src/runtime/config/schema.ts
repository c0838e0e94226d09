/**
 * One JSON Schema for the whole of `tollbridge.yaml`, for editors: the shape the program checks against, with every
 * adapter's own schemas in their sections. `npm run schema` writes it to `tollbridge.schema.json`; a test compares the
 * two.
 */

import type { Json, JsonObject } from '../../model/schema.ts';
import type { Adapter } from '../../ports/index.ts';
import { EXPOSE, exposeSchema } from './expose.ts';
import { AgentTermsShape, ConfigShape } from './shape.ts';

export function configSchema(adapters: readonly Adapter[]): JsonObject {
  const shape = JSON.parse(JSON.stringify(ConfigShape)) as JsonObject & { properties: Record<string, JsonObject> };
  const named = (role: 'backend' | 'tools' | 'policy'): JsonObject => {
    const parts = adapters.flatMap((adapter) => {
      const part = adapter.parts[role];
      return part ? [[adapter.name, plain(part.configSchema)] as const] : [];
    });
    return {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      maxProperties: 1,
      properties: Object.fromEntries(parts),
    };
  };
  const { doors, agents, tools, harnesses, relays } = shape.properties;
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'tollbridge.yaml',
    $defs: { from_environment: FROM_ENVIRONMENT },
    ...shape,
    properties: {
      ...(fillable(shape.properties) as Record<string, JsonObject>),
      rules: shape.properties.rules as JsonObject,
      doors: fillable({
        type: 'object',
        ...(doors?.description ? { description: doors.description } : {}),
        additionalProperties: false,
        properties: Object.fromEntries(
          adapters.flatMap(({ name, parts: { door } }) =>
            door ? [[name, { anyOf: [plain(door.configSchema), { const: false }] }]] : [],
          ),
        ),
      }) as JsonObject,
      agents: { ...agents, additionalProperties: fillable(withTerms(named('backend'))) },
      tools: { ...tools, additionalProperties: fillable(withExpose(named('tools'))) },
      harnesses: { ...harnesses, additionalProperties: fillable(named('policy')) },
      relays: fillable({
        type: 'object',
        ...(relays?.description ? { description: relays.description } : {}),
        additionalProperties: false,
        properties: Object.fromEntries(
          adapters.flatMap(({ name, parts: { relay } }) => (relay ? [[name, plain(relay.configSchema)]] : [])),
        ),
      }) as JsonObject,
    },
  };
}

/** The section of one protocol, and beside it what holds whichever that is. */
function withTerms({ properties, minProperties: _least, maxProperties: _most, ...section }: JsonObject): JsonObject {
  const oneOf = Object.keys(properties as JsonObject).map((name) => ({ required: [name] }));
  return { ...section, oneOf, properties: { ...(properties as JsonObject), ...plain(AgentTermsShape.properties) } };
}

/** A server that clients start themselves has only this member; others have it beside their protocol's. */
function withExpose({ properties, ...section }: JsonObject): JsonObject {
  return { ...section, maxProperties: 2, properties: { ...(properties as JsonObject), [EXPOSE]: plain(exposeSchema) } };
}

/** Drops the builder's private symbols. */
function plain(schema: object): JsonObject {
  return JSON.parse(JSON.stringify(schema)) as JsonObject;
}

/** A reference to an environment variable, which is a text until it is replaced. */
const REFERENCE = { $ref: '#/$defs/from_environment' };
const FROM_ENVIRONMENT = {
  description: 'What the environment says; see the README.',
  type: 'string',
  pattern: '\\$\\{[A-Za-z_]',
};

/** Where a number, a boolean or a text with a pattern is required, a reference is accepted too. */
function fillable(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(fillable);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { propertyNames, ...rest } = schema as JsonObject;
  const inside = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, fillable(value as Json)]));
  const { type, description, ...more } = {
    ...inside,
    ...(propertyNames !== undefined && { propertyNames }),
  } as JsonObject;
  const strict =
    type === 'integer' || type === 'number' || type === 'boolean' || (type === 'string' && (more.pattern || more.enum));
  const said = description === undefined ? {} : { description };
  return strict
    ? { ...said, anyOf: [{ type, ...more }, REFERENCE] }
    : { ...said, ...(type !== undefined && { type }), ...more };
}
