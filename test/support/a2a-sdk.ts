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

/** An unmodified client of the SDK; only its fetch adds the token. */
export async function sdkClient(url: string, binding: 'JSONRPC' | 'HTTP+JSON', token: string): Promise<Client> {
  const fetchImpl = withToken(token);
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
      transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
      preferredTransports: [binding],
    }),
  );
  return await factory.createFromUrl(url);
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
export function speech(id: string, pieces: readonly string[]) {
  const whole = pieces.join('');
  return [
    ...pieces.map((text) => ({
      event: 'vendor.tollbridge.message_delta',
      payload: { message_id: id, role: 'assistant', text },
    })),
    {
      event: 'agent.message',
      payload: { message: { id, role: 'assistant', parts: [{ type: 'text', text: whole, visibility: 'public' }] } },
    },
  ];
}
