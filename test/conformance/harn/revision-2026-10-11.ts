/** `agents-protocol-2026-10-11`. */
import { catalog } from './catalog.ts';
import { liveClients } from './live-clients.ts';
import { modes } from './modes.ts';
import { permissions } from './permissions.ts';
import type { Revision } from './revision.ts';
import { OTHER_WRITES, TASK_WRITES } from './writes.ts';

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
