/** Agent Harness v1: the runs API, for services that start runs here and for remote harnesses as agents. */
import { NOT_RENDERED, REVISION } from '../../mappings/runs.ts';
import { type Adapter, part } from '../../src/index.ts';
import { runsBackend } from './client/backend.ts';
import { backendSchema } from './client/config.ts';
import { configSchema, settingsOf } from './config.ts';
import { runsDoor } from './server/door.ts';
import { createRunRenderer } from './server/render/events.ts';

export const runs = {
  name: 'runs',
  revision: REVISION,
  view() {
    const { render } = createRunRenderer();
    return { frames: render, leftOut: NOT_RENDERED };
  },
  parts: {
    door: part(configSchema, (config, context) => runsDoor(settingsOf(config), context)),
    backend: part(backendSchema, (config, context) => runsBackend(context.name, config, context)),
  },
} satisfies Adapter;
