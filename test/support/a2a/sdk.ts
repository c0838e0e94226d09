/** Unmodified clients of the SDK and what one says with them. Usable outside of a test, too. */
import { Role, type SendMessageRequest } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { credentials } from '@grpc/grpc-js';
import type { Fact } from '../../../src/index.ts';

export type Binding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC';

/** An unmodified client of the SDK; only its fetch adds the token. */
export async function sdkClient(url: string, binding: Binding, token: string): Promise<Client> {
  const fetchImpl = withToken(token);
  const grpcChannelCredentials = credentials.createInsecure();
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
      transports: [
        new JsonRpcTransportFactory({ fetchImpl }),
        new RestTransportFactory({ fetchImpl }),
        new GrpcTransportFactory({ grpcChannelCredentials }),
      ],
      preferredTransports: [binding],
      clientConfig: { interceptors: [bearer(token)] },
    }),
  );
  return await factory.createFromUrl(url);
}

/** For gRPC, which no fetch sees. */
export function bearer(token: string) {
  const authorization = `Bearer ${token}`;
  return {
    async before(call: { options?: { serviceParameters?: Record<string, string> } }) {
      call.options = { ...call.options, serviceParameters: { ...call.options?.serviceParameters, authorization } };
    },
    async after() {},
  };
}

export function withToken(token: string): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${token}`);
    return fetch(input, { ...init, headers });
  };
}

let sent = 0;

/** A request to send one text, or the parts given. */
export function sending(text: string, more: Partial<NonNullable<SendMessageRequest['message']>> = {}, config = {}) {
  sent += 1;
  const request: SendMessageRequest = {
    tenant: '',
    metadata: undefined,
    configuration: {
      returnImmediately: false,
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      ...config,
    },
    message: {
      messageId: `m-${sent}`,
      role: Role.ROLE_USER,
      contextId: '',
      taskId: '',
      parts: [{ content: { $case: 'text', value: text }, mediaType: '', filename: '', metadata: undefined }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...more,
    },
  };
  return request;
}

/** The wire form of a message with one text. */
export function wire(text: string, more: object = {}) {
  sent += 1;
  return { message: { messageId: `w-${sent}`, role: 'ROLE_USER', parts: [{ text }], ...more } };
}

/** An agent's message as it streams it: pieces, then the whole. */
export function speech(id: string, pieces: readonly string[]): Fact[] {
  const whole = pieces.join('');
  return [
    ...pieces.map(
      (text): Fact => ({
        event: 'vendor.tollbridge.message_delta',
        payload: { message_id: id, role: 'assistant', text },
      }),
    ),
    {
      event: 'agent.message',
      payload: { message: { id, role: 'assistant', parts: [{ type: 'text', text: whole, visibility: 'public' }] } },
    },
  ];
}
