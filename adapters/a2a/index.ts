/** Agent2Agent: the agents of this gateway for peers to call, and peers as agents of this gateway. */
import { StreamResponse } from '@a2a-js/sdk';
import { NOT_SENT } from '../../mappings/a2a.ts';
import { type Adapter, type CoreEvent, part } from '../../src/index.ts';
import { a2aBackend } from './client/backend.ts';
import { backendSchema } from './client/config.ts';
import { configSchema, settingsOf } from './config.ts';
import { a2aDoor } from './server/door.ts';
import { createProjection, type Update } from './server/render-events.ts';

export const a2a = {
  name: 'a2a',
  revision: '1.0',
  view() {
    const answering = { may: () => true, texts: true, byReader: true };
    const link = (id: string) => `artifact:${id}`;
    const { take } = createProjection({ contextId: 'context', activity: true, pieces: true, answering, link });
    const shown = (payload: Update) => StreamResponse.toJSON({ payload }) as object;
    return { frames: (event: CoreEvent) => take(event).map(shown), leftOut: NOT_SENT };
  },
  parts: {
    door: part(configSchema, (config, context) => a2aDoor(settingsOf(config), context)),
    backend: part(backendSchema, (config, context) => a2aBackend(context.name, config, context)),
  },
} satisfies Adapter;
