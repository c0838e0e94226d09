/** The Agent Harness Protocol: agents ask the gateway before they act, and outside harnesses decide for agents that do not speak it. */
import { NOT_NOTIFIED, PROTOCOL } from '../../mappings/ahp.ts';
import { type Adapter, type CoreEvent, part } from '../../src/index.ts';
import { toWireNews } from './client/event-notices.ts';
import { createUpstream } from './client/policy-engine.ts';
import { configSchema, settingsOf, UpstreamShape } from './config.ts';
import { ahpDoor } from './server/door.ts';

export const ahp = {
  name: 'ahp',
  revision: PROTOCOL,
  view: () => ({
    frames: (event: CoreEvent) => toWireNews(event, { agent_id: event.actor ?? '', depth: 0, via: [] }),
    leftOut: NOT_NOTIFIED,
  }),
  parts: {
    door: part(configSchema, (config, context) => ahpDoor(settingsOf(config), context)),
    policy: part(UpstreamShape, (config, context) => createUpstream({ name: context.name, ...config }, context)),
  },
} satisfies Adapter;
