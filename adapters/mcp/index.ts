/** The Model Context Protocol: servers of tools behind the gate, and clients of both eras in front of it. */
import { MODERN } from '../../mappings/mcp.ts';
import { type Adapter, type CoreEvent, part } from '../../src/index.ts';
import { createPerCaller } from './client/auth/per-caller.ts';
import { createUpstream } from './client/tool-backend.ts';
import { configSchema, isPerCaller, settingsOf, upstreamSchema } from './config.ts';
import { mcpDoor } from './server/door.ts';
import { toWireEnd } from './translate.ts';

export const mcp = {
  name: 'mcp',
  revision: MODERN,
  view: () => ({ frames: (event: CoreEvent) => toWireEnd(event), leftOut: {} }),
  parts: {
    door: part(configSchema, (config, context) => mcpDoor(settingsOf(config), context)),
    tools: part(upstreamSchema, (config, context) =>
      (isPerCaller(config) ? createPerCaller : createUpstream)(context.name, config, context),
    ),
  },
} satisfies Adapter;

export { keepingIn, keptAs, REDIRECT, signedIn } from './client/auth/auth.ts';
export { callerKeptAs } from './client/auth/caller-auth.ts';
export { probe } from './client/auth/probe.ts';
export { revoke } from './client/auth/revoke.ts';
export type { OpenSignInPage } from './client/auth/sign-in.ts';
export type { UpstreamConfig } from './config.ts';
