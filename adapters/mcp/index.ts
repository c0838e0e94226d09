/** The Model Context Protocol: servers of tools behind the gate, and clients of both eras in front of it. */
import { MODERN } from '../../mappings/mcp.ts';
import type { Adapter } from '../../src/index.ts';
import { createUpstream } from './client/tool-backend.ts';
import { configSchema, type McpConfig, settingsOf, upstreamSchema } from './config.ts';
import { mcpDoor } from './server/door.ts';

export const mcp: Adapter<McpConfig> = {
  name: 'mcp',
  revision: MODERN,
  configSchema,
  door: (config, deps) => mcpDoor(settingsOf(config), deps),
  tools: { configSchema: upstreamSchema, open: (name, config, deps) => createUpstream(name, config, deps) },
};
