/**
 * Stories rendered in the runs API: a service that starts a run, reads its stream and signals it. A `person` is someone at
 * another door, for what a run has no word for: a no that only denies the act.
 */
import type { AskRecord } from '../../../src/model/asks.ts';
import type { Json, JsonObject } from '../../../src/model/schema.ts';
import type { Row } from '../../../src/ports/index.ts';
import { openRunsDoor, PAIR } from '../doors/runs.ts';
import { type OpenWire, play } from '../playing.ts';
import type { Teller } from '../teller.ts';

export const teller: Teller = {
  protocol: 'runs',
  shares: 'log',
  effects: 'here',
  tell: (world, lines, record) => play(world, lines, open, record),
};

const open: OpenWire = async (world, hear) => {
  const { runtime, ana } = world;
  const door = await openRunsDoor(world);
  const talking = new Set<Promise<void>>();
  let line = new AbortController();

  async function ask({ method, path, headers, body }: JsonObject, signal?: AbortSignal): Promise<Response> {
    return await fetch(`${door.url}${path}`, {
      method: String(method),
      headers: {
        authorization: `Bearer ${PAIR}`,
        ...(headers as Record<string, string> | undefined),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  }

  async function streamed(frame: JsonObject, on: string, signal: AbortSignal): Promise<void> {
    const response = await ask(frame, signal);
    let rest = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      rest += chunk;
      const frames = rest.split('\n\n');
      rest = frames.pop() ?? '';
      for (const reported of frames) {
        const data = /^id: \d+\nevent: run_event\ndata: (.*)$/.exec(reported)?.[1];
        hear(data === undefined ? { frame: reported } : (JSON.parse(data) as Json), { on });
      }
    }
    hear({ end: true }, { on });
  }

  /** Someone at another door answers the question that is open. */
  async function answer(input: JsonObject): Promise<void> {
    const { data } = await runtime.bridge.list<AskRecord & Row>(ana, { object: 'ask', where: { state: 'open' } });
    const body = { ask_id: data[0]?.id ?? '', ...input } as { ask_id: string };
    await runtime.bridge.submit({ kind: 'ask.answer', actor: ana, body });
  }

  return {
    async say(frame, { from, on }) {
      const said = frame as JsonObject;
      if (from === 'person') return await answer(said.answer as JsonObject);
      if (said.hang_up) return line.abort();
      if (on) {
        line = new AbortController();
        const talk = streamed(said, on, line.signal);
        talking.add(talk);
        talk.catch(() => {}).finally(() => talking.delete(talk));
        return;
      }
      const response = await ask(said);
      hear({ status: response.status, body: (await response.json()) as Json });
    },
    async close() {
      line.abort();
      await Promise.allSettled(talking);
      await door.close();
    },
  };
};
