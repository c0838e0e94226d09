/**
 * Giving work, against a bare express server that parses the same JSON and sends it back. `task-submit`: requests per second
 * that are authenticated, decided by policy, made durable once under their idempotency key and answered, the task begun;
 * its agent is held back until all are answered. `task-complete`: the same with an agent that is done at once, counted when
 * every task has ended and its receipt is sealed. The callers are one other process, the same for all sides.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { AgentBackend } from '../../src/ports/index.ts';
import { HEADERS, median, openDoor, startLoad } from '../native/side.ts';
import type { Measured } from '../run.ts';

export const name = 'task-submit';

const CALLERS = 64;
const REQUESTS = 192;
const ROUNDS = 4;
const BODY = JSON.stringify({
  input: {
    role: 'user',
    parts: [{ type: 'text', text: 'look at the plan and say what is missing', visibility: 'public' }],
  },
  metadata: { from: 'bench' },
});

/** Done at once, or when it is let go. */
function quickAgent() {
  let gate = Promise.resolve();
  const agent: AgentBackend = {
    name: 'quick',
    abilities: { resume: false, evidence: 'held' },
    start: async () => ({ done: gate.then(() => ({ state: 'COMPLETED' as const })) }),
  };
  return {
    agent,
    hold(): () => void {
      let letGo = () => {};
      gate = new Promise((resolve) => {
        letGo = resolve;
      });
      return () => {
        gate = Promise.resolve();
        letGo();
      };
    },
  };
}

interface Round {
  readonly accepted: number;
  readonly completed: number;
  readonly echoed: number;
}

export async function run(): Promise<readonly Measured[]> {
  const { agent, hold } = quickAgent();
  const door = await openDoor(agent);
  const echo = await echoServer();
  const load = startLoad();
  const rounds: Round[] = [];
  try {
    const perSecond = async (port: number, paths: readonly string[], requests: number, more = async () => {}) => {
      const wanted = { do: 'post', port, paths, callers: CALLERS, headers: HEADERS, body: BODY, requests } as const;
      const { ms, bad } = await load.ask(wanted).done;
      if (bad > 0) throw new Error(`${bad} requests were refused`);
      const began = performance.now();
      await more();
      return (requests * 1000) / (ms + performance.now() - began);
    };
    const sessions = async () => {
      // One each: work in one session is done one after the other, which is not the question.
      const made = await Promise.all(Array.from({ length: REQUESTS }, () => door.session()));
      return made.map((id) => `/v1/sessions/${id}/tasks`);
    };
    for (let round = 0; round <= ROUNDS; round += 1) {
      const letGo = hold();
      const accepted = await perSecond(door.port, await sessions(), REQUESTS);
      letGo();
      await door.runtime.idle();
      const completed = await perSecond(door.port, await sessions(), REQUESTS, () => door.runtime.idle());
      const echoed = await perSecond(echo.port, ['/echo'], REQUESTS * 4);
      // The first round warms every side up.
      if (round > 0) rounds.push({ accepted, completed, echoed });
    }
  } finally {
    load.close();
    echo.server.close();
    await door.close();
  }
  const of = (what: keyof Round) => Math.round(median(rounds.map((round) => round[what])));
  const ratio = (what: keyof Round) => Number(median(rounds.map((round) => round[what] / round.echoed)).toFixed(3));
  const shared = { against: 'express JSON echo', callers: CALLERS, echoed_per_second: of('echoed') };
  return [
    { bench: name, ratio: ratio('accepted'), accepted_per_second: of('accepted'), ...shared },
    { bench: 'task-complete', ratio: ratio('completed'), completed_per_second: of('completed'), ...shared },
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
