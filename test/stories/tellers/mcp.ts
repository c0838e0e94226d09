/**
 * Stories told in MCP: a client of 2025-11-25 gives the demo agent its work with a tool, answers its questions in forms, and
 * hears how it goes as progress. The agent and its tools are the house's, so log and receipts are the story's own.
 */
import { createCommonDesk } from '../../../adapters/mcp/common-desk.ts';
import { settingsOf } from '../../../adapters/mcp/config.ts';
import { createDesk } from '../../../adapters/mcp/desk.ts';
import { type Frame, isRequest } from '../../../adapters/mcp/frames.ts';
import { createNorthSession } from '../../../adapters/mcp/north-session.ts';
import { createStints } from '../../../adapters/mcp/stints.ts';
import type { Json } from '../../../src/model/schema.ts';
import { type OpenWire, play } from '../playing.ts';
import type { Teller } from '../teller.ts';

const open: OpenWire = async ({ house, ana, workspace, personaId, ids, clock, logger }, hear) => {
  const { bridge } = house;
  const settings = settingsOf({ workspace: workspace.id, ...(personaId && { persona: personaId }) });
  const deps = { ids, clock, log: logger };
  const stints = createStints(bridge, settings, deps);
  const parts = { bridge, stints, settings, deps };
  const deskOf = (server: string) => createDesk(server, parts);
  const desk = createCommonDesk({ ...parts, deskOf, servers: [], agents: true });
  const say = (frame: Frame) => hear(frame as unknown as Json);
  const session = createNorthSession({
    id: 'story',
    actor: { ...ana, door: 'mcp' },
    desk,
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
      desk.close();
      await Promise.allSettled(talking);
      await stints.close();
    },
  };
};

export const teller: Teller = {
  protocol: 'mcp',
  shares: 'log',
  effects: 'here',
  tell: (world, lines, record) => play(world, lines, open, record),
};
