/**
 * The story itself: the steps of `story.json` as commands through the bridge, with a reader on the task's events from
 * first to last. Its rendition is the log, so there are no frames.
 */
import type { AskRecord } from '../../../src/model/asks.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { Artifact } from '../../../src/model/resources.ts';
import { isTerminal } from '../../../src/model/words.ts';
import type { Row } from '../../../src/ports/index.ts';
import type { Step } from '../story.ts';
import type { Teller } from '../teller.ts';
import type { World } from '../world.ts';

export const teller: Teller = {
  protocol: 'core',
  shares: 'log',
  effects: 'here',
  async tell(world) {
    const { ana: actor, workspace, personaId, story } = world;
    const { submit } = world.runtime.bridge;
    const home = { workspace_id: workspace.id, ...(personaId && { persona_id: personaId }) };
    const session = await submit({ kind: 'session.create', actor, body: home });
    const input = { role: 'user', parts: [{ type: 'text', text: story.world.says, visibility: 'public' }] };
    const body = { session_id: session.resource.id, input };
    const taskId = (await submit({ kind: 'task.submit', actor, body })).resource.id;
    const reader = createReader(world, taskId);
    try {
      reader.readOn();
      for (const step of story.steps) await take(step, world, taskId, reader);
      await reader.ended();
      await world.runtime.idle();
    } finally {
      reader.leave();
    }
    return { frames: [], read: reader.seen };
  },
};

async function take(step: Step, world: World, taskId: string, reader: Reader): Promise<void> {
  const { bridge } = world.runtime;
  const { ana: actor } = world;
  if ('until' in step) await world.until(step.until);
  else if ('pass_ms' in step) world.pass(step.pass_ms);
  else if ('release' in step) world.release();
  else if ('drop_reader_after' in step) await reader.dropped();
  else if ('read_on' in step) reader.readOn();
  else if ('cancel' in step) {
    await bridge.submit({ kind: 'task.cancel', actor, body: { task_id: taskId, ...step.cancel } });
  } else if ('answer' in step) {
    const open = { object: 'ask', where: { task_id: taskId, state: 'open' } };
    const [ask] = (await bridge.list<AskRecord & Row>(actor, open)).data;
    if (!ask) throw new Error(`${world.story.name}: there is no question to answer`);
    await bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: ask.id, ...step.answer } });
  } else {
    const { name, text } = step.download;
    const files = await bridge.list<Artifact & Row>(actor, { object: 'artifact', where: { task_id: taskId } });
    const file = files.data.find(({ metadata }) => metadata.name === name);
    const found = file && Buffer.from(await bridge.bytes(actor, file.id)).toString('utf8');
    if (found !== text) throw new Error(`${world.story.name}: ${name} holds ${JSON.stringify(found)}`);
  }
}

interface Reader {
  readonly seen: readonly CoreEvent[];
  readOn(): void;
  /** Resolves once it has gone away, with as many events as the story says. */
  dropped(): Promise<void>;
  ended(): Promise<void>;
  leave(): void;
}

/** Reads a task's events as they come, as far as the story lets it. After a break it has the events it read, and no more. */
function createReader({ runtime, ana, story }: World, taskId: string): Reader {
  const seen: CoreEvent[] = [];
  const limits = story.steps.flatMap((step) => ('drop_reader_after' in step ? [step.drop_reader_after] : []));
  let connection = new AbortController();
  let reading = Promise.resolve();

  async function read({ signal }: AbortController, most = Number.POSITIVE_INFINITY): Promise<void> {
    const after = seen.at(-1)?.id;
    const from = { stream: { of: 'task', id: taskId } as const, ...(after && { after }) };
    for await (const event of runtime.bridge.follow(ana, from, signal)) {
      seen.push(event);
      if (seen.length === most) return;
      if (event.event.startsWith('task.') && isTerminal(String(event.payload.to))) return;
    }
  }

  return {
    seen,
    readOn() {
      connection = new AbortController();
      reading = read(connection, limits.shift());
    },
    async dropped() {
      await reading;
      connection.abort();
    },
    ended: () => reading,
    leave: () => connection.abort(),
  };
}
