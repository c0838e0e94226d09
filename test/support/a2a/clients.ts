/** Unmodified clients of two generations of the SDK behind one face, so that a test is written once for all of them. */
import { type StreamResponse, type TaskState, taskStateToJSON } from '@a2a-js/sdk';
import { credentials } from '@grpc/grpc-js';
import {
  ClientFactory as OldFactory,
  JsonRpcTransportFactory as OldJsonRpc,
  ClientFactoryOptions as OldOptions,
  DefaultAgentCardResolver as OldResolver,
  RestTransportFactory as OldRest,
} from 'a2a-sdk-v03/client';
import { GrpcTransportFactory as OldGrpc } from 'a2a-sdk-v03/client/grpc';
import { type Binding, bearer, sdkClient, sending, withToken } from './sdk.ts';

/** What a stream said, in as few words as possible. States are spelled as 1.0 spells them, without the prefix. */
export interface Received {
  readonly kind: 'task' | 'status' | 'artifact';
  readonly taskId: string;
  readonly state?: string | undefined;
  readonly text?: string | undefined;
  /** Data parts of a status message. */
  readonly data?: unknown;
}

export interface AnyClient {
  stream(text: string, how?: { taskId?: string; data?: object }): AsyncGenerator<Received>;
  subscribe(taskId: string): AsyncGenerator<Received>;
  cancel(taskId: string): Promise<string>;
  state(taskId: string): Promise<string>;
}

export async function newClient(url: string, binding: Binding, token = 'ana'): Promise<AnyClient> {
  const client = await sdkClient(url, binding, token);
  const word = (state: TaskState | undefined) => taskStateToJSON(state ?? 0).replace('TASK_STATE_', '');

  async function* received(events: AsyncGenerator<StreamResponse>): AsyncGenerator<Received> {
    for await (const { payload } of events) {
      if (payload?.$case === 'task') {
        const { id, status, artifacts } = payload.value;
        const texts = artifacts.flatMap(({ parts }) => parts.map(({ content }) => content?.value));
        yield { kind: 'task', taskId: id, state: word(status?.state), text: texts.join('') };
      } else if (payload?.$case === 'statusUpdate') {
        const { taskId, status } = payload.value;
        const data = status?.message?.parts.find(({ content }) => content?.$case === 'data')?.content?.value;
        yield { kind: 'status', taskId, state: word(status?.state), data };
      } else if (payload?.$case === 'artifactUpdate') {
        const { taskId, artifact } = payload.value;
        yield { kind: 'artifact', taskId, text: String(artifact?.parts[0]?.content?.value ?? '') };
      }
    }
  }

  return {
    stream: (text, { taskId = '', data } = {}) => {
      const parts = data && {
        parts: [{ content: { $case: 'data' as const, value: data }, mediaType: '', filename: '', metadata: undefined }],
      };
      return received(client.sendMessageStream(sending(text, { taskId, ...parts })));
    },
    subscribe: (id) => received(client.resubscribeTask({ id, tenant: '' })),
    cancel: async (id) => word((await client.cancelTask({ id, tenant: '', metadata: undefined })).status?.state),
    state: async (id) => word((await client.getTask({ id, tenant: '' })).status?.state),
  };
}

export async function oldClient(url: string, binding: Binding, token = 'ana'): Promise<AnyClient> {
  const fetchImpl = withToken(token);
  const factory = new OldFactory(
    OldOptions.createFrom(OldOptions.default, {
      cardResolver: new OldResolver({ fetchImpl }),
      transports: [
        new OldJsonRpc({ fetchImpl }),
        new OldRest({ fetchImpl }),
        new OldGrpc({ grpcChannelCredentials: credentials.createInsecure() }),
      ],
      preferredTransports: [binding],
      clientConfig: { interceptors: [bearer(token)] },
    }),
  );
  const client = await factory.createFromUrl(url);
  const word = (state: string) => state.replace('-', '_').toUpperCase();
  let sent = 0;

  async function* received(events: AsyncGenerator<unknown>): AsyncGenerator<Received> {
    for await (const event of events) {
      const said = event as OldEvent;
      if (said.kind === 'task') {
        const texts = (said.artifacts ?? []).flatMap(({ parts }) => parts.map(({ text }) => text));
        yield { kind: 'task', taskId: said.id, state: word(said.status.state), text: texts.join('') };
      } else if (said.kind === 'status-update') {
        const data = said.status.message?.parts.find(({ kind }) => kind === 'data')?.data;
        yield { kind: 'status', taskId: said.taskId, state: word(said.status.state), data };
      } else if (said.kind === 'artifact-update') {
        yield { kind: 'artifact', taskId: said.taskId, text: said.artifact.parts[0]?.text };
      }
    }
  }

  return {
    stream: (text, { taskId, data } = {}) => {
      sent += 1;
      const part = data
        ? { kind: 'data' as const, data: data as Record<string, unknown> }
        : { kind: 'text' as const, text };
      const message = { kind: 'message' as const, messageId: `o-${sent}`, role: 'user' as const, parts: [part] };
      return received(client.sendMessageStream({ message: { ...message, ...(taskId && { taskId }) } }));
    },
    subscribe: (id) => received(client.resubscribeTask({ id })),
    cancel: async (id) => word((await client.cancelTask({ id })).status.state),
    state: async (id) => word((await client.getTask({ id })).status.state),
  };
}

/** What 0.3 streams carry, as far as it is looked at here. */
interface OldPart {
  readonly kind: string;
  readonly text?: string;
  readonly data?: Record<string, unknown>;
}
interface OldStatus {
  readonly state: string;
  readonly message?: { readonly parts: readonly OldPart[] };
}
type OldEvent =
  | { kind: 'task'; id: string; status: OldStatus; artifacts?: readonly { readonly parts: readonly OldPart[] }[] }
  | { kind: 'status-update'; taskId: string; status: OldStatus }
  | { kind: 'artifact-update'; taskId: string; artifact: { readonly parts: readonly OldPart[] } };
