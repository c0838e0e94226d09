/** OpenAPI documents as tool servers: one tool per operation, each call decided like any other. */
import { type Adapter, part } from '../../src/index.ts';
import { createOpenApiTools } from './client/tool-backend.ts';
import { configSchema } from './config.ts';

export const openapi = {
  name: 'openapi',
  revision: '3.1',
  parts: { tools: part(configSchema, (config, context) => createOpenApiTools(context.name, config, context)) },
} satisfies Adapter;
