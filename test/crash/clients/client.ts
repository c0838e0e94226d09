/**
 * A client that uses the gateway: opens sessions, gives work, answers questions, changes its mind, watches. It outlives the
 * gateway, remembers which requests were answered, and sends the others again with the same key.
 */
import type { JsonObject } from '../../../src/model/schema.ts';
import { isTerminal } from '../../../src/model/words.ts';
import { Broken } from '../broken.ts';
import type { Chance } from '../random.ts';
import { answerTo, openAsks } from './answers.ts';
import { type Door, Gone } from './door.ts';
import { isAccepted, type Ledger, type Write } from './ledger.ts';
import { createListening } from './streams.ts';
import { wordsFor } from './words.ts';

export interface ClientDeps {
  readonly name: string;
  readonly ledger: Ledger;
  readonly chance: Chance;
  readonly workspace: string;
  /** Called for every answer that arrives. */
  replied(): void;
}
export interface Client {
  /** Lives at this door until asked to stop; the door may vanish at any moment after that. */
  live(door: Door, stop: AbortSignal): Promise<void>;
  /** Sends every request again that was not answered. */
  settle(door: Door): Promise<void>;
}

const WISHES = { task: 50, answer: 26, look: 8, cancel: 7, session: 5, steer: 5, replay: 4, message: 3, close: 1 };
const MOST_STREAMS = 3;
const MOST_SESSIONS = 6;

export function createClient({ name, ledger, chance, workspace, replied }: ClientDeps): Client {
  const mine: Write[] = [];
  const listening = createListening(ledger);
  let sessions: string[] = [];
  let tasks: string[] = [];
  const over: string[] = [];
  let persona: string | undefined;
  let count = 0;

  const nonce = () => {
    count += 1;
    return `n-${name}-${count}`;
  };
  const text = (words: string): JsonObject => ({
    role: 'user',
    parts: [{ type: 'text', text: words, visibility: 'public' }],
  });

  function want(write: Omit<Write, 'sent'>): Write {
    const wanted = ledger.want(write);
    mine.push(wanted);
    return wanted;
  }

  async function send(door: Door, write: Write): Promise<void> {
    write.sent += 1;
    const reply = await door.write(write.path, write.nonce, write.body);
    if (reply.status >= 500) throw new Broken('the gateway answers', `${write.path}: ${reply.status}`, reply.body);
    write.reply = reply;
    replied();
    const { id, status } = reply.body as { id: string; status: string };
    if (!isAccepted(write)) return;
    if (write.kind === 'persona') persona = id;
    if (write.kind === 'session') sessions.push(id);
    if (write.kind === 'task') {
      tasks.push(id);
      ledger.looks.push({ task: id, status });
    }
    if (write.kind === 'close') sessions = sessions.filter((session) => session !== write.about);
  }

  async function act(door: Door): Promise<void> {
    if (sessions.length === 0) return await openSession(door);
    switch (chance.weighted(WISHES)) {
      case 'task':
        return await giveWork(door);
      case 'answer':
        return await answerSomething(door);
      case 'look':
        return await look(door);
      case 'cancel':
        return await aboutTask(door, (task, n) => ({
          kind: 'cancel',
          path: `/v1/tasks/${task}/cancel`,
          body: { reason: n },
        }));
      case 'steer':
        return await aboutTask(door, (task, n) => ({
          kind: 'task-message',
          path: `/v1/tasks/${task}/messages`,
          body: { kind: 'interrupt', message: text(chance.happens(0.3) ? `please stop ${n}` : `by the way ${n}`) },
        }));
      case 'message': {
        const n = nonce();
        const path = `/v1/sessions/${chance.pick(sessions)}/messages`;
        return await send(
          door,
          want({ kind: 'message', path, body: { message: text(`note to self ${n}`) }, nonce: n }),
        );
      }
      case 'replay': {
        if (over.length === 0) return;
        const n = nonce();
        const path = `/v1/tasks/${chance.pick(over)}/replay`;
        return await send(door, want({ kind: 'replay', path, body: { metadata: { nonce: n } }, nonce: n }));
      }
      case 'session':
        if (sessions.length < MOST_SESSIONS) await openSession(door);
        return;
      case 'close': {
        const session = chance.pick(sessions);
        const path = `/v1/sessions/${session}/close`;
        return await send(door, want({ kind: 'close', path, body: {}, nonce: nonce(), about: session }));
      }
    }
  }

  async function openSession(door: Door): Promise<void> {
    const guarded = chance.happens(0.25);
    if (guarded && !persona) {
      const n = nonce();
      const body = {
        name: 'guarded',
        version: '1',
        entry_workflow: 'demo',
        description: 'work for it is asked about first',
        autonomy_tier: 'act_auto',
        receipt_policy: 'required',
        metadata: { nonce: n },
      };
      await send(door, want({ kind: 'persona', path: '/v1/personas', body, nonce: n }));
    }
    const n = nonce();
    const body = { workspace_id: workspace, ...(guarded && { persona_id: persona ?? null }), metadata: { nonce: n } };
    await send(door, want({ kind: 'session', path: '/v1/sessions', body, nonce: n }));
  }

  async function giveWork(door: Door): Promise<void> {
    const n = nonce();
    const body = { input: text(wordsFor(n, chance)), metadata: { nonce: n } };
    const path = `/v1/sessions/${chance.pick(sessions)}/tasks`;
    const write = want({ kind: 'task', path, body, nonce: n });
    await send(door, write);
    if (!isAccepted(write) || !chance.happens(0.4)) return;
    const id = String(write.reply?.body.id);
    if (listening.count() < MOST_STREAMS)
      listening.begin(door, { path: `/v1/tasks/${id}/stream`, of: { member: 'task_id', id }, fromNow: false });
  }

  /** Some questions are answered, by one way or the other; the rest is left open. */
  async function answerSomething(door: Door): Promise<void> {
    const open = await openAsks(door, ledger);
    if (open.length === 0 || chance.happens(0.2)) return;
    const ask = chance.pick(open);
    await send(door, want(answerTo(ask, nonce(), chance)));
  }

  async function look(door: Door): Promise<void> {
    if (tasks.length === 0) return;
    const id = chance.pick(tasks.slice(-10));
    const { status } = (await door.read(`/v1/tasks/${id}`)) as { status: string };
    ledger.looks.push({ task: id, status });
    if (chance.happens(0.3)) await readBack(door, id);
    if (!isTerminal(status)) return;
    tasks = tasks.filter((task) => task !== id);
    over.push(id);
  }

  /** A range of events is as good as a stream: what it shows was promised. */
  async function readBack(door: Door, task: string): Promise<void> {
    const path = `/v1/tasks/${task}/events?limit=200`;
    const { data } = (await door.read(path)) as { data: JsonObject[] };
    const received = ledger.listen({ path, of: { member: 'task_id', id: task }, fromNow: false });
    received.done = true;
    for (const event of data)
      received.frames.push({ id: String(event.id), event: String(event.event), data: JSON.stringify(event) });
  }

  async function aboutTask(
    door: Door,
    say: (task: string, nonce: string) => Pick<Write, 'kind' | 'path' | 'body'>,
  ): Promise<void> {
    if (tasks.length === 0) return;
    const task = chance.pick(tasks.slice(-6));
    const n = nonce();
    await send(door, want({ ...say(task, n), nonce: n, about: task }));
  }

  return {
    async live(door, stop) {
      listening.goOn(door);
      try {
        await again(door, 0.85);
        while (!stop.aborted) {
          await act(door);
          if (chance.happens(0.5)) await pause(chance.between(0, 12));
        }
      } catch (cause) {
        if (!(cause instanceof Gone && stop.aborted)) throw unexpected(cause, name);
      } finally {
        await listening.over();
      }
    },
    settle: (door) => again(door, 1),
  };

  async function again(door: Door, share: number): Promise<void> {
    for (const write of mine.filter(({ reply, abandoned }) => !reply && !abandoned)) {
      if (chance.happens(share)) await send(door, write);
      else write.abandoned = true;
    }
  }
}

function unexpected(cause: unknown, name: string): unknown {
  if (!(cause instanceof Gone)) return cause;
  return new Broken(
    'the gateway answers',
    `${name} was cut off while nobody had killed anything: ${String(cause.cause)}`,
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
