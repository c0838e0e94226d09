/** A context without a client to ask: for the gateway's own requests, and for callers of other protocols. */
import { Fault } from '../../src/index.ts';
import { CLIENT_INFO } from './client/transport/create-transport.ts';
import type { McpRequestContext } from './request-context.ts';

export function backgroundContext(): McpRequestContext {
  return {
    // No session and no envelope: the peer adds the members that the server's era requires.
    era: 'legacy',
    id: 0,
    params: {},
    principal: '',
    capabilities: {},
    client: { ...CLIENT_INFO },
    notify() {},
    input: () => Promise.reject(new Fault('not_implemented', 'no client is connected that could answer')),
  };
}
