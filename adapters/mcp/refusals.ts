/** Frames that were refused, as they stand in the log: who sent which method, and why it went no further. */
import type { Bridge } from '../../src/index.ts';
import type { Caller } from './caller.ts';
import type { Notice, Request } from './frames.ts';
import type { Stints } from './stints.ts';

export type Refuse = (frame: Request | Notice, reason: string, caller: Caller) => Promise<void>;

/** A frame may bring a name of any length. */
const LONGEST_NAME = 200;

export function createRefuse(bridge: Bridge, stints: Stints): Refuse {
  return async ({ method, params }, refused, caller) => {
    const workspace_id = await stints.workspace(caller);
    const body = { protocol: 'mcp', method: method.slice(0, LONGEST_NAME) || '(empty)', workspace_id, refused };
    await bridge.submit({ kind: 'passthrough', actor: caller.actor, body: { ...body, ...(params && { params }) } });
  };
}
