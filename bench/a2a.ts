/**
 * Serving A2A peers, against the SDK's own in-memory request handler behind the SDK's own transport, with the same agent in
 * the same run. `a2a-send`: blocking sends per second, each authenticated, decided by policy, made durable and receipted on
 * our side. `a2a-stream`: events per second on streams of many chunks. The callers are one other process, the same for both.
 */
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AgentCard, TaskState } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { settingsOf } from '../adapters/a2a/config.ts';
import { a2aDoor } from '../adapters/a2a/server.ts';
import { createAuthenticator } from '../src/auth/authenticate.ts';
import { openHouse, SERVING_ROOM } from '../src/compose.ts';
import { FIRST_RULES } from '../src/config.ts';
import { createIds, systemClock } from '../src/core/clock.ts';
import type { Actor } from '../src/model/actions.ts';
import type { AgentBackend, Deps, Logger } from '../src/ports.ts';
import { createHttpHost } from '../src/wire/http.ts';
import type { A2aTold, A2aWanted } from './native/a2a-load.ts';
import { median } from './native/side.ts';
import type { Measured } from './run.ts';

export const names = ['a2a-send', 'a2a-stream'] as const;
export const name = 'a2a';

const ROUNDS = 4;
const ANA: Actor = { id: 'ana', kind: 'person', scopes: ['*'] };
const TOKEN = 'token-of-the-measurement';
const quiet: Logger = { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) };
/** Pieces an agent may have on their way at a time. */
const AT_ONCE = 8;
const PIECE = 'a piece of an answer ';

interface Shape {
  readonly method: string;
  readonly chunks: number;
  readonly callers: number;
  readonly requests: number;
  /** Rounds both sides serve before anything is counted: a gateway runs for weeks. */
  readonly warmUp: number;
}
const SHAPES: Readonly<Record<(typeof names)[number], Shape>> = {
  'a2a-send': { method: 'SendMessage', chunks: 3, callers: 128, requests: 512, warmUp: 8 },
  'a2a-stream': { method: 'SendStreamingMessage', chunks: 300, callers: 8, requests: 8, warmUp: 4 },
};

export async function run(wanted: string = name): Promise<readonly Measured[]> {
  const figures: Measured[] = [];
  for (const each of wanted === name ? names : [wanted as (typeof names)[number]]) figures.push(await measure(each));
  return figures;
}

async function measure(bench: (typeof names)[number]): Promise<Measured> {
  const shape = SHAPES[bench];
  const ours = await openOurs(shape.chunks);
  const theirs = await openTheirs(shape.chunks);
  const child = fork(fileURLToPath(new URL('./native/a2a-load.js', import.meta.url)));
  const ask = (wanted: A2aWanted) =>
    new Promise<A2aTold>((resolve) => {
      child.once('message', resolve);
      child.send(wanted);
    });
  const parts = [{ text: 'look at the plan and say what is missing' }];
  const params = { message: { messageId: 'm', role: 'ROLE_USER', parts } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: shape.method, params });
  const rate = async ({ port, path }: Side): Promise<Rate> => {
    const before = process.cpuUsage();
    const { ms, bad, events } = await ask({ port, path, body, callers: shape.callers, requests: shape.requests });
    if (bad > 0) throw new Error(`${bad} requests were refused`);
    const { user, system } = process.cpuUsage(before);
    const count = bench === 'a2a-send' ? shape.requests : events;
    return { perSecond: (count * 1000) / ms, cpuMs: (user + system) / 1000 / count };
  };
  const rounds: { ours: Rate; theirs: Rate }[] = [];
  try {
    for (let round = 0; round < shape.warmUp + ROUNDS; round += 1) {
      const one = { ours: await rate(ours), theirs: await rate(theirs) };
      if (round >= shape.warmUp) rounds.push(one);
    }
  } finally {
    child.kill();
    await theirs.close();
    await ours.close();
  }
  const of = (figure: (each: { ours: Rate; theirs: Rate }) => number) => Number(median(rounds.map(figure)).toFixed(3));
  const unit = bench === 'a2a-send' ? 'sends' : 'events';
  return {
    bench,
    ratio: of((each) => each.ours.perSecond / each.theirs.perSecond),
    against: "the SDK's in-memory DefaultRequestHandler with the same agent",
    [`ours_${unit}_per_second`]: Math.round(of((each) => each.ours.perSecond)),
    [`theirs_${unit}_per_second`]: Math.round(of((each) => each.theirs.perSecond)),
    // Time of the processor alone, without what was spent waiting for the disk.
    ours_cpu_ms_each: of((each) => each.ours.cpuMs),
    theirs_cpu_ms_each: of((each) => each.theirs.cpuMs),
  };
}

interface Rate {
  readonly perSecond: number;
  readonly cpuMs: number;
}

interface Side {
  readonly port: number;
  readonly path: string;
  close(): Promise<void>;
}

async function openOurs(chunks: number): Promise<Side> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-bench-'));
  const agent: AgentBackend = {
    name: 'talker',
    abilities: { resume: false, evidence: 'held' },
    async start({ task }, sink) {
      const work = async () => {
        const message_id = `${task.id}.m`;
        const payload = { message_id, role: 'assistant', text: PIECE };
        // The other side's agent waits for nothing it says; this one never for more than it may have on the way.
        const told: Promise<void>[] = [];
        for (let count = 0; count < chunks; count += 1) {
          told.push(sink.emit({ event: 'vendor.tollbridge.message_delta', payload }));
          if (told.length === AT_ONCE) await Promise.all(told.splice(0));
        }
        const text = PIECE.repeat(chunks);
        const message = { id: message_id, role: 'assistant', parts: [{ type: 'text', text, visibility: 'public' }] };
        told.push(sink.emit({ event: 'agent.message', payload: { message } }));
        await Promise.all(told);
        return { state: 'COMPLETED' as const };
      };
      return { done: work() };
    },
  };
  const ids = createIds();
  const policy = { load: async () => ({ rules: FIRST_RULES, rulesName: 'bench', files: [] }) };
  const house = await openHouse({
    dataDir: dir,
    roomBytes: SERVING_ROOM,
    backends: [agent],
    ids,
    logger: quiet,
    policy,
  });
  await house.start();
  const home = { object: 'workspace' as const, body: { name: 'w', root: 'tollbridge://w' } };
  await house.bridge.submit({ kind: 'resource.create', actor: ANA, body: home });
  const http = createHttpHost({ requestId: () => ids.next('req'), log: quiet, graceMs: 100 });
  const deps: Deps = {
    log: quiet,
    clock: systemClock,
    ids,
    http,
    authenticate: createAuthenticator({ clock: systemClock, localToken: TOKEN, localActor: ANA, dataDir: dir }),
    jwks: () => house.keyring.jwks(),
    sign: (text) => house.keyring.signer().sign(text),
    mac: (text) => house.keyring.signer().mac(text),
    secret: () => Promise.reject(new Error('there are no secrets here')),
  };
  const door = await a2aDoor(settingsOf({}), deps).open(house.bridge);
  const { url } = await http.listen();
  return {
    port: Number(new URL(url).port),
    path: '/a2a/talker',
    async close() {
      await door.close();
      await http.close();
      await house.idle();
      await house.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function openTheirs(chunks: number): Promise<Side> {
  const executor: AgentExecutor = {
    async execute({ taskId, contextId, userMessage }, bus) {
      const at = { taskId, contextId, metadata: undefined };
      const status = (state: TaskState) => ({ state, message: undefined, timestamp: new Date().toISOString() });
      const submitted = status(TaskState.TASK_STATE_SUBMITTED);
      bus.publish(
        AgentEvent.task({
          id: taskId,
          contextId,
          status: submitted,
          artifacts: [],
          history: [userMessage],
          metadata: undefined,
        }),
      );
      bus.publish(AgentEvent.statusUpdate({ ...at, status: status(TaskState.TASK_STATE_WORKING) }));
      for (let count = 0; count < chunks; count += 1) {
        const part = {
          content: { $case: 'text' as const, value: PIECE },
          mediaType: 'text/plain',
          filename: '',
          metadata: undefined,
        };
        const artifact = {
          artifactId: 'm',
          name: 'response',
          description: '',
          parts: [part],
          metadata: undefined,
          extensions: [],
        };
        bus.publish(AgentEvent.artifactUpdate({ ...at, artifact, append: count > 0, lastChunk: count === chunks - 1 }));
      }
      bus.publish(AgentEvent.statusUpdate({ ...at, status: status(TaskState.TASK_STATE_COMPLETED) }));
    },
    async cancelTask() {},
  };
  const card = AgentCard.fromJSON({
    name: 'talker',
    description: 'talks',
    version: '1',
    supportedInterfaces: [{ url: 'http://127.0.0.1/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
  });
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  const app = express();
  app.use('/rpc', jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    path: '/rpc',
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
