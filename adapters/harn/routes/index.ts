/** Every operation of the table and what serves it. One that has no route does not compile. */
import type { Desk, Routes } from '../call.ts';
import { artifactRoutes } from './artifacts.ts';
import { connectorRoutes } from './connectors.ts';
import { declaredRoutes } from './declared.ts';
import { discoveryRoutes } from './discovery.ts';
import { eventRoutes } from './events.ts';
import { fileRoutes } from './files.ts';
import { permissionRoutes } from './permissions.ts';
import { receiptRoutes } from './receipts.ts';
import { sessionRoutes } from './sessions.ts';
import { taskRoutes } from './tasks.ts';
import { toolRoutes } from './tools.ts';

export function createRoutes(desk: Desk): Routes {
  return {
    ...discoveryRoutes(desk),
    ...declaredRoutes(desk),
    ...sessionRoutes(desk),
    ...taskRoutes(desk),
    ...permissionRoutes(desk),
    ...eventRoutes(desk),
    ...artifactRoutes(desk),
    ...receiptRoutes(desk),
    ...connectorRoutes(desk),
    ...toolRoutes(desk),
    ...fileRoutes(desk),
  };
}
