/**
 * One JSON Schema for the whole of `tollbridge.yaml`, for editors: the shape the program checks against, with every adapter's own
 * schemas put where the file speaks of them. `npm run schema` writes it to `tollbridge.schema.json`; a test holds the two together.
 */
import { ConfigShape } from './config-shape.ts';
import type { JsonObject } from './model/schema.ts';
import type { Adapter } from './ports.ts';

export function configSchema(adapters: readonly Adapter<never>[]): JsonObject {
  const shape = JSON.parse(JSON.stringify(ConfigShape)) as JsonObject & { properties: Record<string, JsonObject> };
  const named = (role: 'backend' | 'tools' | 'policy'): JsonObject => {
    const parts = adapters.flatMap((adapter) => {
      const part = adapter[role];
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
    ...shape,
    properties: {
      ...shape.properties,
      doors: {
        type: 'object',
        ...(doors?.description ? { description: doors.description } : {}),
        additionalProperties: false,
        properties: Object.fromEntries(
          adapters.map(({ name, configSchema }) => [name, { anyOf: [plain(configSchema), { const: false }] }]),
        ),
      },
      agents: { ...agents, additionalProperties: named('backend') },
      tools: { ...tools, additionalProperties: named('tools') },
      harnesses: { ...harnesses, additionalProperties: named('policy') },
      relays: {
        type: 'object',
        ...(relays?.description ? { description: relays.description } : {}),
        additionalProperties: false,
        properties: Object.fromEntries(
          adapters.flatMap(({ name, relay }) => (relay ? [[name, plain(relay.configSchema)]] : [])),
        ),
      },
    },
  };
}

/** Without what the builder keeps for itself. */
function plain(schema: object): JsonObject {
  return JSON.parse(JSON.stringify(schema)) as JsonObject;
}
