/** Logs refused frames: the sender, the method, and the reason for the refusal. */
import type { Bridge } from '../../../src/index.ts';
import type { Notice, Request } from '../frames.ts';
import type { CallTasks } from './call-tasks.ts';
import type { Caller } from './caller.ts';

export type Refuse = (frame: Request | Notice, reason: string, caller: Caller) => Promise<void>;

/** A frame may bring a name of any length. */
const LONGEST_NAME = 200;

export function createRefuse(bridge: Bridge, callTasks: CallTasks): Refuse {
  return async ({ method, params }, refused, caller) => {
    const workspace_id = await callTasks.workspace(caller);
    const body = { protocol: 'mcp', method: method.slice(0, LONGEST_NAME) || '(empty)', workspace_id, refused };
    await bridge.submit({ kind: 'passthrough', actor: caller.actor, body: { ...body, ...(params && { params }) } });
  };
}
