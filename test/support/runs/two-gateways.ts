/** Two gateways: work given to the near one is done by the far one, over the runs API and a relay that can be cut. */
import { runsBackend } from '../../../adapters/runs/client/backend.ts';
import type { RunsBackendConfig } from '../../../adapters/runs/client/config.ts';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools, type DemoTools } from '../../../src/demo/tools.ts';
import type { Message } from '../../../src/model/resources.ts';
import type { AgentBackend, Row } from '../../../src/ports/index.ts';
import { openTestGateway, says, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';
import { openRelay, type Relay } from '../wire/relay.ts';
import { openRuns, type RunsDoor, type RunsDoorOptions } from './gateway.ts';

const quiet = { info() {}, warn() {}, error() {} };
/** There: sending mail is asked about, the rest is allowed. Here everything is. */
const THERE =
  '[{ id: all, then: allow }, { id: mail, when: { tool: send_mail }, then: ask, say: mail is asked about }]';
const HERE = '[{ id: all, then: allow }, { id: mail, when: { tool: send_mail }, then: ask, say: asked here }]';
const real = { now: () => new Date().toISOString() };

export function remoteAgent(url: string, more: Partial<RunsBackendConfig> = {}): AgentBackend {
  const config: RunsBackendConfig = {
    url,
    secret: 'far-key',
    ...more,
    timeouts: { poll_ms: 100, silence_ms: 5000, cancel_ms: 2000, ...more.timeouts },
  };
  return runsBackend('far', config, { log: quiet, secret: async () => 'ana:ana-secret' });
}

export interface Pair {
  readonly far: RunsDoor;
  readonly near: TestGateway;
  readonly tools: DemoTools;
  readonly relay: Relay;
  /** Gives the remote work through the near gateway. */
  give(text: string): Promise<{ id: string; session: string }>;
  /** What was said here in a session. */
  said(session: string): Promise<string[]>;
  /** The far run, once there is one. */
  there(): Promise<string>;
}

export interface PairOptions {
  readonly far?: RunsDoorOptions;
  readonly near?: TestGatewayOptions;
  readonly client?: Partial<RunsBackendConfig>;
}

export async function openPair({ far = {}, near = {}, client = {} }: PairOptions = {}): Promise<Pair> {
  const tools = createDemoTools();
  const agent = createDemoAgent({ pause: async () => {} });
  const door = await openRuns({ agents: [agent], tools: [tools], rules: THERE, clock: real as never, ...far });
  const relay = await openRelay(door.url);
  const runtime = await openTestGateway({
    agents: [remoteAgent(relay.url, client)],
    rules: HERE,
    clock: real as never,
    ...near,
  });
  return {
    far: door,
    near: runtime,
    tools,
    relay,
    async give(text) {
      const room = await runtime.room();
      const { id } = await room.task({ input: says(text) });
      return { id, session: room.session };
    },
    async said(session) {
      const messages = await runtime.runtime.store.list<Message & Row>({
        object: 'message',
        where: { session_id: session },
      });
      return messages
        .filter(({ role }) => role === 'assistant')
        .map(({ parts }) => (parts[0] as { text: string }).text);
    },
    async there() {
      const stop = AbortSignal.timeout(10_000);
      for await (const { event, task_id } of door.at.runtime.store.follow({ stream: { of: 'all' } }, stop)) {
        if (event === 'task.submitted') return `run_${task_id?.slice(5)}`;
      }
      throw new Error('no run was made');
    },
  };
}
