/**
 * Stories rendered in AHP: an agent outside asks before it acts and tells what it did. The demo tools are the gateway's, so the
 * teller runs what the agent was let do, and the world is left as the story says.
 */
import { settingsOf } from '../../../adapters/ahp/config.ts';
import { createHarness, type HarnessCaller } from '../../../adapters/ahp/server/harness.ts';
import type { AskRecord } from '../../../src/model/asks.ts';
import type { Json, JsonObject } from '../../../src/model/schema.ts';
import type { Row } from '../../../src/ports/index.ts';
import { type OpenWire, play } from '../playing.ts';
import type { Teller } from '../teller.ts';

/** What the operator of this gateway says its tools do. */
const EFFECTS = { read_note: 'read', write_note: 'write', delete_note: 'delete', send_mail: 'send' } as const;

const open: OpenWire = async ({ runtime, ana, workspace, personaId, tools, ids, clock, logger }, hear) => {
  const gone = new AbortController();
  const settings = settingsOf({
    workspace: workspace.id,
    ...(personaId && { persona: personaId }),
    effects: EFFECTS,
    // The agent of these stories runs what it is given instead; one that might not hears block.
    honours: ['modify'],
    settle_ms: 0,
  });
  const harness = createHarness(runtime.bridge, settings, { log: logger, ids, clock });
  const caller: HarnessCaller = { actor: { ...ana, door: 'ahp' }, gone: gone.signal };
  const talking = new Set<Promise<void>>();

  async function talk(frame: Json): Promise<void> {
    const outcome = await harness.receive(frame, caller);
    if (outcome.kind === 'reply') hear(outcome.response as Json);
    if (outcome.kind === 'rejected') hear({ rejected: outcome.message });
  }

  /** A person, at some other door. */
  async function answer(body: JsonObject): Promise<void> {
    const open = { object: 'ask', where: { state: 'open' } };
    const [ask] = (await runtime.bridge.list<AskRecord & Row>(ana, open)).data;
    if (!ask) throw new Error('there is no question to answer');
    await runtime.bridge.submit({ kind: 'ask.answer', actor: ana, body: { ask_id: ask.id, ...body } });
  }

  /** The agent does what it was let do. */
  async function run({ tool, arguments: args }: JsonObject): Promise<void> {
    const action = { tool, arguments: args, kind: 'tool' } as unknown as Parameters<typeof tools.call>[0];
    await tools.call(action, gone.signal);
  }

  return {
    async say(frame, { from }) {
      if (from === 'person') return await answer(frame as JsonObject);
      if (from === 'hands') return await run(frame as JsonObject);
      const said = talk(frame);
      talking.add(said);
      said.finally(() => talking.delete(said));
      // What is only reported is reported in order; a question may be open while the story goes on.
      if ((frame as JsonObject).id === undefined) await said;
    },
    async close() {
      gone.abort();
      await Promise.allSettled(talking);
      await harness.close();
    },
  };
};

export const teller: Teller = {
  protocol: 'ahp',
  shares: 'spine',
  effects: 'here',
  tell: (world, lines, record) => play(world, lines, open, record),
};
