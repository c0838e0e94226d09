/**
 * One busy task and many who follow it: events per second delivered through the door (made durable first, then rendered,
 * authorised and written to each), against the limit: a loop that writes the same bytes to the same number of bare sockets, the frames of
 * one turn in one write each. The readers are one other process, the same for both.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setImmediate as breath } from 'node:timers/promises';
import type { AgentBackend } from '../../src/ports/index.ts';
import { ANA, HEADERS, median, openDoor, startLoad } from '../native/side.ts';
import type { Measured } from '../run.ts';

export const name = 'sse-fanout';

const FOLLOWERS = 200;
const EVENTS = 300;
/** Reported at once, as an agent with several calls in flight does. */
const AT_ONCE = 32;
const ROUNDS = 5;

function busyAgent() {
  let go = () => {};
  const agent: AgentBackend = {
    name: 'busy',
    abilities: { resume: false, evidence: 'held' },
    async start(_, sink) {
      const received = new Promise<void>((resolve) => {
        go = resolve;
      });
      const work = async () => {
        await received;
        for (let at = 0; at < EVENTS; at += AT_ONCE) {
          const few = Array.from({ length: Math.min(AT_ONCE, EVENTS - at) }, (_, each) => at + each);
          await Promise.all(
            few.map((n) => sink.emit({ event: 'vendor.tollbridge.note', payload: { n, said: 'word '.repeat(20) } })),
          );
        }
        return { state: 'COMPLETED' as const };
      };
      return { done: work() };
    },
  };
  return { agent, go: () => go() };
}

export async function run(): Promise<readonly Measured[]> {
  const { agent, go } = busyAgent();
  const door = await openDoor(agent);
  const load = startLoad();
  const bare = await bareServer();
  const ours: number[] = [];
  const theirs: number[] = [];
  try {
    for (let round = 0; round <= ROUNDS; round += 1) {
      const { path, stream } = await newTask(door);
      const followed = load.ask({ do: 'follow', port: door.port, path, headers: HEADERS, sockets: FOLLOWERS });
      await followed.ready;
      const began = performance.now();
      go();
      const { least, bad } = await followed.done;
      const took = performance.now() - began;
      const frames = await stream();
      if (bad > 0 || least < Buffer.concat(frames).length) throw new Error('a follower missed something');

      const plain = load.ask({ do: 'follow', port: bare.port, path: '/', headers: '', sockets: FOLLOWERS });
      const last = frames.slice(-(EVENTS + 1));
      await bare.open(FOLLOWERS, frames.slice(0, -last.length));
      await plain.ready;
      const start = performance.now();
      await bare.write(last);
      await plain.done;
      const bareTook = performance.now() - start;
      // The first round warms both sides up.
      if (round === 0) continue;
      ours.push((EVENTS * FOLLOWERS * 1000) / took);
      theirs.push((EVENTS * FOLLOWERS * 1000) / bareTook);
    }
  } finally {
    load.close();
    bare.close();
    await door.close();
  }
  const ratios = ours.map((value, at) => value / theirs[at]!);
  return [
    {
      bench: name,
      ratio: Number(median(ratios).toFixed(3)),
      against: 'one write to each bare socket for the frames of a turn',
      followers: FOLLOWERS,
      events: EVENTS,
      delivered_per_second: Math.round(median(ours)),
      bare_per_second: Math.round(median(theirs)),
    },
  ];
}

async function newTask(door: Awaited<ReturnType<typeof openDoor>>) {
  const session_id = await door.session();
  const input = { role: 'user', parts: [{ type: 'text', text: 'go', visibility: 'public' }] };
  const { resource } = await door.runtime.bridge.submit({
    kind: 'task.submit',
    actor: ANA,
    body: { session_id, input },
  });
  const path = `/v1/tasks/${resource.id}/stream`;
  const headers = Object.fromEntries(
    HEADERS.trim()
      .split('\r\n')
      .map((line) => line.split(': ') as [string, string]),
  );
  return {
    path,
    /** The frames as they travelled, once the task is over. */
    async stream(): Promise<Buffer[]> {
      const text = await (await fetch(`${door.url}${path}`, { headers })).text();
      return text.split(/(?<=\n\n)/).map((frame) => Buffer.from(frame));
    },
  };
}

async function bareServer() {
  let held: Socket[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n');
      held.push(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const toAll = (frames: readonly Buffer[]) => {
    const bytes = Buffer.concat(frames);
    for (const socket of held) socket.write(bytes);
  };
  return {
    port: (server.address() as AddressInfo).port,
    /** Everyone is there and has what came before. */
    async open(count: number, before: readonly Buffer[]) {
      while (held.length < count) await breath();
      toAll(before);
    },
    async write(frames: readonly Buffer[]) {
      // As many at a time as our side's events come in, so that neither may hand over more than the other.
      for (let at = 0; at < frames.length; at += AT_ONCE) {
        toAll(frames.slice(at, at + AT_ONCE));
        await breath();
      }
      for (const socket of held) socket.end();
      held = [];
    },
    close: () => void server.close(),
  };
}
