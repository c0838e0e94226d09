/**
 * Stories rendered in MCP: a client of 2025-11-25 gives the demo agent its work with a tool, answers its questions in forms, and
 * hears how it goes as progress. The agent and its tools are the gateway's, so log and receipts are the story's own.
 */

import { settingsOf } from '../../../adapters/mcp/config.ts';
import { type Frame, isRequest } from '../../../adapters/mcp/frames.ts';
import { createAggregateEndpoint } from '../../../adapters/mcp/server/aggregate/endpoint.ts';
import { createCallTasks } from '../../../adapters/mcp/server/call-tasks.ts';
import { createEndpoint } from '../../../adapters/mcp/server/endpoint.ts';
import { createLegacyClientSession } from '../../../adapters/mcp/server/transports/legacy-session.ts';
import type { Json } from '../../../src/model/schema.ts';
import { type OpenWire, play } from '../playing.ts';
import type { Teller } from '../teller.ts';

const open: OpenWire = async ({ runtime, ana, workspace, personaId, ids, clock, logger }, hear) => {
  const { bridge } = runtime;
  const settings = settingsOf({ workspace: workspace.id, ...(personaId && { persona: personaId }) });
  const deps = { ids, clock, log: logger };
  const callTasks = createCallTasks(bridge, settings, deps);
  const parts = { bridge, callTasks, settings, deps };
  const handlerOf = (server: string) => createEndpoint(server, parts);
  const handler = createAggregateEndpoint({ ...parts, handlerOf, servers: [], agents: true });
  const say = (frame: Frame) => hear(frame as unknown as Json);
  const session = createLegacyClientSession({
    id: 'story',
    actor: { ...ana, door: 'mcp' },
    handler,
    standalone: { send: say },
    log: logger,
  });
  const talking = new Set<Promise<void>>();

  async function talk(frame: Frame): Promise<void> {
    const outcome = await session.receive(frame, { send: say });
    if (isRequest(frame) && outcome) say({ jsonrpc: '2.0', id: frame.id, ...outcome });
  }

  return {
    async say(frame) {
      const said = talk(frame as unknown as Frame);
      talking.add(said);
      said.finally(() => talking.delete(said));
      // A question may be open while the story goes on.
      if (!isRequest(frame as unknown as Frame)) await said;
    },
    async close() {
      session.end();
      handler.close();
      await Promise.allSettled(talking);
      await callTasks.close();
    },
  };
};

export const teller: Teller = {
  protocol: 'mcp',
  shares: 'log',
  effects: 'here',
  tell: (world, lines, record) => play(world, lines, open, record),
};
