/** The Agents Protocol: the canonical protocol itself, spoken over HTTP. */
import { type Adapter, type CoreEvent, part } from '../../src/index.ts';
import { harnBackend } from './client/backend.ts';
import { backendSchema } from './client/config.ts';
import { configSchema, settingsOf } from './config.ts';
import { VERSIONS } from './revisions/revisions.ts';
import { harnDoor } from './server/door.ts';
import { createFileTools } from './server/workspace-files.ts';
import { toWireEvent } from './translate.ts';

export const harn = {
  name: 'harn',
  revision: VERSIONS.join(', '),
  view: () => ({ frames: (event: CoreEvent) => [toWireEvent(event)], leftOut: {} }),
  parts: {
    door: part(configSchema, (config, context) =>
      harnDoor(settingsOf(config), context, [createFileTools(config.files ?? [])]),
    ),
    backend: part(backendSchema, (config, context) => harnBackend({ name: context.name, ...config }, context)),
  },
} satisfies Adapter;
