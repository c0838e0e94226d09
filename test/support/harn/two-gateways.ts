/** Two gateways: one that gives work to the other over the wire, with a line between them that can be broken. */
import { setTimeout as sleep } from 'node:timers/promises';
import { harnBackend } from '../../../adapters/harn/client/backend.ts';
import type { HarnBackendConfig } from '../../../adapters/harn/client/config.ts';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools, type DemoTools } from '../../../src/demo/tools.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { Message } from '../../../src/model/resources.ts';
import type { AgentBackend, Row } from '../../../src/ports/index.ts';
import { kinds, openTestGateway, says, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';
import { openRelay, type Relay } from '../wire/relay.ts';
import { type Door, type DoorOptions, openDoor } from './gateway.ts';

/** There: sending mail is asked about, the rest is allowed. */
export const RULES = `
- { id: all, then: allow }
- { id: mail, when: { tool: send_mail }, then: ask, say: mail is asked about }
`;
export const OPEN = '[{ id: all, then: allow }]';
export const real = { now: () => new Date().toISOString() };
export const quiet = { info() {}, warn() {}, error() {} };

export interface Two {
  readonly far: Door;
  readonly near: TestGateway;
  readonly tools: DemoTools;
  readonly relay: Relay;
  /** Gives the remote work through our gateway. */
  give(text: string): Promise<{ id: string; session: string }>;
  /** The remote's own record of its only task. */
  there(): Promise<{ id: string; status: string; events: string[] }>;
}

export interface TwoOptions {
  readonly far?: DoorOptions;
  readonly near?: TestGatewayOptions;
  readonly client?: Partial<HarnBackendConfig>;
  readonly stepMs?: number;
}

export function demoAgent(stepMs = 5): AgentBackend {
  return createDemoAgent({ pause: (ms, signal) => sleep(ms, undefined, { signal }), stepMs });
}

export function remoteAgent(url: string, more: Partial<HarnBackendConfig> = {}): AgentBackend {
  const config = {
    url,
    name: 'far',
    secret: 'far-token',
    ...more,
    timeouts: { poll_ms: 100, silence_ms: 5000, cancel_ms: 2000, ...more.timeouts },
  };
  return harnBackend(config, { log: quiet, clock: real, secret: async () => 'ana' });
}

export async function openTwo({ far = {}, near = {}, client = {}, stepMs }: TwoOptions = {}): Promise<Two> {
  const tools = createDemoTools();
  const door = await openDoor({ agents: [demoAgent(stepMs)], tools: [tools], rules: RULES, clock: real, ...far });
  const relay = await openRelay(door.url);
  const runtime = await openTestGateway({
    agents: [remoteAgent(relay.url, client)],
    rules: OPEN,
    clock: real,
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
    async there() {
      const { body } = await door.call('GET', '/v1/tasks');
      const [task] = body.data;
      const events = (await door.call('GET', `/v1/tasks/${task.id}/events?limit=200`)).body.data as CoreEvent[];
      return { id: task.id, status: task.status, events: kinds(events) };
    },
  };
}

export async function said({ near }: Two, session: string): Promise<string[]> {
  const list = { object: 'message', where: { session_id: session } };
  const messages = await near.runtime.store.list<Message & Row>(list);
  return messages.filter(({ role }) => role === 'assistant').map(({ parts }) => (parts[0] as { text: string }).text);
}
