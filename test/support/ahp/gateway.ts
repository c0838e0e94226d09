/** A real gateway with the AHP harness in it, and someone who speaks to it in as few words as possible. */
import { onTestFinished } from 'vitest';
import { type AhpConfig, settingsOf } from '../../../adapters/ahp/config.ts';
import {
  createHarness,
  type Harness,
  type HarnessCaller,
  type MessageOutcome,
} from '../../../adapters/ahp/server/harness.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Logger } from '../../../src/ports/index.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';

export const AGENT: Actor = { id: 'coder', kind: 'agent', scopes: ['*'] };
export const QUIET: Logger = { info() {}, warn() {}, error() {} };

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Said = any;

export interface Agent {
  readonly t: TestGateway;
  readonly harness: Harness;
  readonly workspace: string;
  readonly caller: HarnessCaller;
  send(message: unknown, caller?: HarnessCaller): Promise<MessageOutcome>;
  /** The result of a request, or its error under `error`. */
  request(method: string, params: unknown, caller?: HarnessCaller): Promise<Said>;
  /** The decision to an event of agent `a` in session `s`. */
  ask(type: string, payload: unknown, more?: JsonObject, caller?: HarnessCaller): Promise<Said>;
  tell(type: string, payload: unknown, more?: JsonObject): Promise<MessageOutcome>;
  /** The one supervised task, or the last of them. */
  task(): Promise<Said>;
}

/** An agent that obeys all five words, and is answered `escalate` while no approver has decided. */
export const OBEDIENT: AhpConfig = { honours: ['modify', 'defer', 'escalate'], unanswered: 'escalate' };

export interface AgentOptions extends TestGatewayOptions {
  readonly config?: AhpConfig;
  readonly actor?: Actor;
}

export function event(type: string, payload: unknown, more: JsonObject = {}): JsonObject {
  return {
    event_type: type,
    session_id: 's',
    agent_id: 'a',
    timestamp: '2026-05-01T00:00:00Z',
    depth: 0,
    payload,
    ...more,
  } as JsonObject;
}

export async function openAgent({ config = {}, actor = AGENT, ...options }: AgentOptions = {}): Promise<Agent> {
  const t = await openTestGateway(options);
  const made = await t.send('resource.create', { object: 'workspace', body: { name: 'w', root: 'file:///w' } });
  const workspace = made.resource.id;
  let count = 0;
  const harness = createHarness(t.bridge, settingsOf({ settle_ms: 0, workspace, ...config }), {
    log: QUIET,
    clock: t.clock,
    ids: { next: (prefix) => `${prefix}_h${++count}` },
  });
  onTestFinished(() => harness.close());
  const caller: HarnessCaller = { actor, gone: new AbortController().signal };
  const send = (message: unknown, by = caller) => harness.receive(message, by);
  const request: Agent['request'] = async (method, params, by) => {
    const outcome = await send({ jsonrpc: '2.0', id: `r${++count}`, method, params }, by);
    if (outcome.kind !== 'reply') throw new Error(`no reply: ${JSON.stringify(outcome)}`);
    const { result, error } = outcome.response as Said;
    return error ? { error } : result;
  };
  return {
    t,
    harness,
    workspace,
    caller,
    send,
    request,
    ask: (type, payload, more, by) => request('ahp/event', event(type, payload, more), by),
    tell: (type, payload, more) => send({ jsonrpc: '2.0', method: 'ahp/event', params: event(type, payload, more) }),
    async task() {
      const { data } = await t.bridge.list(actor, { object: 'task', newestFirst: true, limit: 1 });
      return data[0];
    },
  };
}
