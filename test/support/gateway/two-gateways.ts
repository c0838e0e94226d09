/** Two gateways in a row over one of the protocols that carry work, on real HTTP: the near one gives what it is given to the far one. */
import { a2aBackend } from '../../../adapters/a2a/client/backend.ts';
import type { DemoTools } from '../../../src/demo/tools.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { AgentBackend } from '../../../src/ports/index.ts';
import { openPeer } from '../a2a/gateway.ts';
import { openDoor } from '../harn/gateway.ts';
import { demoAgent, remoteAgent as harnAgent, quiet, real } from '../harn/two-gateways.ts';
import { openRuns } from '../runs/gateway.ts';
import { remoteAgent as runsAgent } from '../runs/two-gateways.ts';
import { openRelay, type Relay } from '../wire/relay.ts';
import { openTestGateway, says, type TestGateway, type TestGatewayOptions } from './test-gateway.ts';

export const WORK_PROTOCOLS = ['harn', 'runs', 'a2a'] as const;
export type WorkProtocol = (typeof WORK_PROTOCOLS)[number];

export interface Gateways {
  readonly near: TestGateway;
  readonly far: TestGateway;
  readonly tools: DemoTools;
  readonly relay: Relay;
  /** Gives the near gateway work, which the far one does. */
  give(text: string, envelope?: Parameters<Awaited<ReturnType<TestGateway['room']>>['task']>[1]): Promise<string>;
  /** The far gateway's task for it, once there is one. */
  farTask(): Promise<string>;
}

export interface GatewaysOptions {
  readonly far?: TestGatewayOptions;
  readonly near?: TestGatewayOptions;
  readonly stepMs?: number;
  /** How long the far gateway may be unreachable. */
  readonly silenceMs?: number;
}

/** The far door by its protocol, and where it is. */
export async function openFar(protocol: WorkProtocol, options: TestGatewayOptions, publicUrl?: string) {
  if (protocol === 'harn') {
    const { at, url } = await openDoor(options);
    return { at, url, base: (origin: string) => origin };
  }
  if (protocol === 'runs') {
    const { at, url } = await openRuns(options as never);
    return { at, url, base: (origin: string) => origin };
  }
  const { at, url } = await openPeer({ ...options, ...(publicUrl && { config: { public_url: publicUrl } }) });
  const name = options.agents?.[0]?.name ?? 'demo';
  return { at, url, base: (origin: string) => `${origin}/a2a/${name}` };
}

/** An agent of the near gateway whose work is done at this address. `far` is what it is called there. */
/** `silence_ms`: how long the other may be unreachable. */
export function farAgent(protocol: WorkProtocol, url: string, silence_ms = 5000): AgentBackend {
  if (protocol === 'harn') return harnAgent(url, { timeouts: { silence_ms } });
  if (protocol === 'runs') return runsAgent(url, { timeouts: { silence_ms } });
  const timeouts = { poll_ms: 50, silence_ms, cancel_ms: 2000 };
  const config = { url, secret: 'token', timeouts };
  return a2aBackend('far', config, { log: quiet, clock: real, secret: async () => 'ana' });
}

export async function openGateways(protocol: WorkProtocol, options: GatewaysOptions = {}): Promise<Gateways> {
  const tools = createDemoTools();
  const relay = await openRelay('http://127.0.0.1:9');
  const agents = [demoAgent(options.stepMs)];
  const asked = { agents, tools: [tools], clock: real as never, ...options.far };
  const { at: far, url, base } = await openFar(protocol, asked, relay.url);
  relay.to(url);
  const agent = farAgent(protocol, base(relay.url), options.silenceMs);
  const near = await openTestGateway({ agents: [agent], clock: real as never, ...options.near });
  return {
    near,
    far,
    tools,
    relay,
    async give(text, envelope) {
      const room = await near.room();
      return (await room.task({ input: says(text) }, envelope)).id;
    },
    async farTask() {
      const stop = AbortSignal.timeout(10_000);
      for await (const { event, task_id } of far.runtime.store.follow({ stream: { of: 'all' } }, stop)) {
        if (event === 'task.submitted' && task_id) return task_id;
      }
      throw new Error('the far gateway was given nothing');
    },
  };
}

/** What a log says of a task's calls, for messages of failing tests. */
export function reported(events: readonly CoreEvent[]): string[] {
  return events.map(({ event, payload }) => `${event} ${JSON.stringify(payload).slice(0, 200)}`);
}
