/** `agents-protocol-2026-04-25`. */
import { firstRevision } from '../first-revision.ts';
import { OTHER_WRITES, TASK_WRITES } from '../resources/writes.ts';
import type { Revision } from './revision.ts';

export const FIRST: Revision = {
  version: 'agents-protocol-2026-04-25',
  keyedPaths: /^\/v1\//,
  keyed: [...TASK_WRITES, ...OTHER_WRITES],
  unkeyed: [],
  repeated: {},
  taskMessages: ['input', 'interrupt', 'tool_confirmation'],
  steering: 'interrupt',
  own: [firstRevision],
};
