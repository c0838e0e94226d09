/** Peers that are not ours: servers of both SDK generations with a scripted agent, and one that says exactly what it is asked to. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgentCard, type Message, Role, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultPushNotificationSender,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import type { AgentCard as OldCard } from 'a2a-sdk-v03';
import {
  type AgentExecutor as OldExecutor,
  DefaultRequestHandler as OldHandler,
  InMemoryTaskStore as OldStore,
} from 'a2a-sdk-v03/server';
import {
  UserBuilder as OldUser,
  agentCardHandler as oldCardHandler,
  jsonRpcHandler as oldJsonRpc,
  restHandler as oldRest,
} from 'a2a-sdk-v03/server/express';
import express from 'express';
import { onTestFinished } from 'vitest';

const text = (value: string) => ({
  content: { $case: 'text' as const, value },
  mediaType: '',
  filename: '',
  metadata: undefined,
});

export async function listening(
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function cardFor(url: string, more: object = {}): object {
  return {
    name: 'outsider',
    description: 'an outsider',
    version: '1',
    supportedInterfaces: [
      { url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${url}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    ],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    ...more,
  };
}

/** Says two chunks once the gate is open; asks "How many?" first when the message says `ask`. Calls when `push` says so. */
export async function openSdkPeer({ streaming = true, push = false, gate = Promise.resolve() } = {}): Promise<string> {
  const executor: AgentExecutor = {
    async execute({ taskId, contextId, userMessage, task }, bus) {
      const at = { taskId, contextId, metadata: undefined };
      const said = userMessage.parts.map(({ content }) => content?.value).join('');
      const status = (state: TaskState, message?: Message) =>
        bus.publish(
          AgentEvent.statusUpdate({ ...at, status: { state, message, timestamp: new Date().toISOString() } }),
        );
      const first = { id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined };
      const submitted = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined };
      bus.publish(AgentEvent.task(task ?? { ...first, status: submitted }));
      status(TaskState.TASK_STATE_WORKING);
      if (said === 'ask') {
        const asked = {
          messageId: 'q1',
          role: Role.ROLE_AGENT,
          parts: [text('How many?')],
          extensions: [],
          referenceTaskIds: [],
        };
        return status(TaskState.TASK_STATE_INPUT_REQUIRED, { ...asked, ...at });
      }
      await gate;
      for (const [n, value] of [`${said}: `, 'done'].entries()) {
        const artifact = {
          artifactId: 'out',
          name: 'answer',
          description: '',
          parts: [text(value)],
          metadata: undefined,
          extensions: [],
        };
        bus.publish(AgentEvent.artifactUpdate({ ...at, artifact, append: n > 0, lastChunk: n === 1 }));
      }
      status(TaskState.TASK_STATE_COMPLETED);
    },
    async cancelTask() {},
  };
  const app = express();
  const url = await listening((request, response) => app(request, response));
  const wire = cardFor(url, { capabilities: { streaming, pushNotifications: push } });
  const hooks = new InMemoryPushNotificationStore();
  const handler = new DefaultRequestHandler(
    AgentCard.fromJSON(wire),
    new InMemoryTaskStore(),
    executor,
    undefined,
    push ? hooks : undefined,
    push ? new DefaultPushNotificationSender(hooks) : undefined,
  );
  const options = { requestHandler: handler, userBuilder: UserBuilder.noAuthentication };
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: async () => wire as AgentCard }));
  app.use('/rpc', jsonRpcHandler(options));
  app.use('/rest', restHandler(options));
  return url;
}

/** The same agent on the older SDK, which knows nothing of 1.0. */
export async function openOldPeer(): Promise<string> {
  const executor: OldExecutor = {
    async execute({ taskId, contextId, userMessage, task }, bus) {
      const said = userMessage.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
      const status = (state: 'working' | 'completed' | 'input-required', question?: string) => {
        const message = question && {
          message: {
            kind: 'message' as const,
            messageId: 'q1',
            role: 'agent' as const,
            parts: [{ kind: 'text' as const, text: question }],
          },
        };
        const final = state !== 'working';
        bus.publish({
          kind: 'status-update',
          taskId,
          contextId,
          final,
          status: { state, timestamp: new Date().toISOString(), ...message },
        });
      };
      bus.publish(
        task ?? { kind: 'task', id: taskId, contextId, status: { state: 'submitted' }, history: [userMessage] },
      );
      status('working');
      if (said === 'ask') status('input-required', 'How many?');
      else {
        const artifact = {
          artifactId: 'out',
          name: 'answer',
          parts: [{ kind: 'text' as const, text: `${said}: done` }],
        };
        bus.publish({ kind: 'artifact-update', taskId, contextId, artifact, append: false, lastChunk: true });
        status('completed');
      }
      bus.finished();
    },
    async cancelTask() {},
  };
  const app = express();
  const url = await listening((request, response) => app(request, response));
  const card: OldCard = {
    name: 'outsider',
    description: 'an older outsider',
    version: '1',
    protocolVersion: '0.3.0',
    url: `${url}/rpc`,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url: `${url}/rest`, transport: 'HTTP+JSON' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
  };
  const handler = new OldHandler(card, new OldStore(), executor);
  const options = { requestHandler: handler, userBuilder: OldUser.noAuthentication };
  app.use('/.well-known/agent-card.json', oldCardHandler({ agentCardProvider: handler }));
  app.use('/rpc', oldJsonRpc(options));
  app.use('/rest', oldRest(options));
  return url;
}

export interface RawCall {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: whatever came
  readonly body: any;
}
/** What a raw peer says: one result, or things on a stream that then ends, whatever state they left. */
export type Saying = { readonly result: object } | { readonly error: object } | { readonly stream: readonly object[] };

/** Answers JSON-RPC calls by method name, each from its list in turn; the last one stays. */
export async function openRawPeer(script: Record<string, readonly Saying[]>, card: (url: string) => object = cardFor) {
  const calls: RawCall[] = [];
  const left = new Map(Object.entries(script).map(([method, sayings]) => [method, [...sayings]]));
  const url: string = await listening((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      const body = text ? JSON.parse(text) : undefined;
      calls.push({ path: request.url ?? '', headers: request.headers, body });
      if (request.url?.includes('agent-card')) {
        response.setHeader('content-type', 'application/json');
        return void response.end(JSON.stringify(card(url)));
      }
      const sayings = left.get(body?.method) ?? [{ error: { code: -32601, message: 'Invalid method.' } }];
      const saying = (sayings.length > 1 ? sayings.shift() : sayings[0]) as Saying;
      const envelope = { jsonrpc: '2.0', id: body.id };
      if ('stream' in saying) {
        response.setHeader('content-type', 'text/event-stream');
        for (const result of saying.stream) response.write(`data: ${JSON.stringify({ ...envelope, result })}\n\n`);
        return void response.end();
      }
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...envelope, ...saying }));
    });
  });
  return { url, calls };
}
