/** The doors of the live matrix, by name. */
import * as a2a from './a2a.ts';
import * as acp from './acp.ts';
import { ahp } from './ahp.ts';
import type { DoorClient } from './door.ts';
import * as harn from './harn.ts';
import { mcp } from './mcp.ts';
import { runs } from './runs.ts';

export const DOOR_CLIENTS = {
  harn: harn.rest,
  'harn-ws': harn.socket,
  'acp-stdio': acp.stdio,
  'acp-ws': acp.socket,
  mcp,
  a2a: a2a.current,
  'a2a-0.3': a2a.legacy,
  runs,
  ahp,
} as const satisfies Readonly<Record<string, DoorClient>>;
export type Door = keyof typeof DOOR_CLIENTS;
export const DOORS = Object.keys(DOOR_CLIENTS) as readonly Door[];
