/** Every operation of the table and its route. An operation without a route does not compile. */
import type { RouteContext, Routes } from '../call.ts';
import { artifactRoutes } from './artifacts.ts';
import { catalogRoutes } from './catalog.ts';
import { connectorRoutes } from './connectors.ts';
import { declaredRoutes } from './declared.ts';
import { discoveryRoutes } from './discovery.ts';
import { eventRoutes } from './events.ts';
import { fileRoutes } from './files.ts';
import { liveRoutes } from './live.ts';
import { permissionRoutes } from './permissions.ts';
import { receiptRoutes } from './receipts.ts';
import { ruleRoutes } from './rules.ts';
import { sessionRoutes } from './sessions.ts';
import { taskRoutes } from './tasks.ts';
import { toolRoutes } from './tools.ts';

export function createRoutes(context: RouteContext): Routes {
  return {
    ...discoveryRoutes(context),
    ...declaredRoutes(context),
    ...sessionRoutes(context),
    ...taskRoutes(context),
    ...permissionRoutes(context),
    ...ruleRoutes(context),
    ...liveRoutes(context),
    ...catalogRoutes(context),
    ...eventRoutes(context),
    ...artifactRoutes(context),
    ...receiptRoutes(context),
    ...connectorRoutes(context),
    ...toolRoutes(context),
    ...fileRoutes(context),
  };
}
