/** The other side: the SDK's own handler, which keeps everything in memory, behind the SDK's own transport. Prints its port. */
import type { AddressInfo } from 'node:net';
import { AgentCard, TaskState } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { PIECE, pieces } from './talker.ts';

const talker: AgentExecutor = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const at = { taskId, contextId, metadata: undefined };
    const status = (state: TaskState) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_SUBMITTED),
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
    bus.publish(AgentEvent.statusUpdate({ ...at, status: status(TaskState.TASK_STATE_WORKING) }));
    for (let count = 0; count < pieces(); count += 1) {
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
      bus.publish(AgentEvent.artifactUpdate({ ...at, artifact, append: count > 0, lastChunk: count === pieces() - 1 }));
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
const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), talker);
const app = express();
app.use('/rpc', jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
