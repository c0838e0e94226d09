/**
 * Giving work: requests per second that are authenticated, decided by policy, made durable once under their idempotency key and
 * answered, against a bare express server that parses the same JSON and sends it back. Our side also runs each task to its
 * end and seals its receipt meanwhile. The callers are one other process, the same for both.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { AgentBackend } from '../src/ports.ts';
import { HEADERS, median, openDoor, startLoad } from './native/side.ts';
import type { Measured } from './run.ts';

export const name = 'task-submit';

const CALLERS = 64;
const REQUESTS = 400;
const ROUNDS = 5;
const BODY = JSON.stringify({
  input: {
    role: 'user',
    parts: [{ type: 'text', text: 'look at the plan and say what is missing', visibility: 'public' }],
  },
  metadata: { from: 'bench' },
});

const agent: AgentBackend = {
  name: 'quick',
  abilities: { resume: false, evidence: 'held' },
  start: async () => ({ done: Promise.resolve({ state: 'COMPLETED' as const }) }),
};

export async function run(): Promise<readonly Measured[]> {
  const door = await openDoor(agent);
  const echo = await echoServer();
  const load = startLoad();
  const ours: number[] = [];
  const theirs: number[] = [];
  try {
    const sessions = await Promise.all(Array.from({ length: CALLERS }, () => door.session()));
    const post = async (port: number, paths: readonly string[], requests: number) => {
      const { ms, bad } = await load.ask({ do: 'post', port, paths, headers: HEADERS, body: BODY, requests }).done;
      if (bad > 0) throw new Error(`${bad} requests were refused`);
      return (requests * 1000) / ms;
    };
    for (let round = 0; round <= ROUNDS; round += 1) {
      const mine = await post(
        door.port,
        sessions.map((id) => `/v1/sessions/${id}/tasks`),
        REQUESTS,
      );
      await door.house.idle();
      const bare = await post(
        echo.port,
        sessions.map(() => '/echo'),
        REQUESTS * 4,
      );
      // The first round warms both sides up.
      if (round === 0) continue;
      ours.push(mine);
      theirs.push(bare);
    }
  } finally {
    load.close();
    echo.server.close();
    await door.close();
  }
  const ratios = ours.map((value, at) => value / theirs[at]!);
  return [
    {
      bench: name,
      ratio: Number(median(ratios).toFixed(3)),
      against: 'express JSON echo',
      callers: CALLERS,
      submitted_per_second: Math.round(median(ours)),
      echoed_per_second: Math.round(median(theirs)),
    },
  ];
}

async function echoServer(): Promise<{ port: number; server: Server }> {
  const app = express();
  app.use(express.json());
  app.post('/echo', (request, response) => void response.status(202).json(request.body));
  const server = await new Promise<Server>((resolve) => {
    const listening: Server = app.listen(0, '127.0.0.1', () => resolve(listening));
  });
  return { port: (server.address() as AddressInfo).port, server };
}
