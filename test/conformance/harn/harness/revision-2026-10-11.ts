/** `agents-protocol-2026-10-11`. */

import { permissions } from '../access/permissions.ts';
import { catalog } from '../resources/catalog.ts';
import { liveClients } from '../resources/live-clients.ts';
import { OTHER_WRITES, TASK_WRITES } from '../resources/writes.ts';
import { modes } from '../tasks/modes.ts';
import type { Revision } from './revision.ts';

export const SECOND: Revision = {
  version: 'agents-protocol-2026-10-11',
  keyedPaths: /^\/v1\/(sessions\/[^/]+\/)?tasks$/,
  keyed: TASK_WRITES,
  unkeyed: OTHER_WRITES,
  repeated: { 202: 200 },
  taskMessages: ['input'],
  steering: 'input',
  own: [liveClients, modes, permissions, catalog],
};
