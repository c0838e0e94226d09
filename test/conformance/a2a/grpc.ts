/**
 * gRPC to examine: calls of 1.0 as bare as the SDK's own descriptors allow, calls of 0.3 by the unmodified older transport. Both
 * return the status as it came, and results as the JSON the other bindings carry.
 */
import { decodeErrorInfo, decodeStatus } from '@a2a-js/sdk/errors/grpc';
import { A2AService } from '@a2a-js/sdk/server/grpc';
import {
  credentials,
  InterceptingCall,
  type Interceptor,
  Metadata,
  makeGenericClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { GrpcTransport as OldTransport } from 'a2a-sdk-v03/client/grpc';
import { CODECS } from '../../../adapters/a2a/bindings/codecs.ts';
import { OPERATIONS } from '../../../mappings/a2a.ts';
import type { Body } from './target.ts';

export interface GrpcCame {
  /** 0 when all went well. */
  readonly status: number;
  readonly message: string;
  readonly reason: string | undefined;
  readonly result: Body;
}
export type GrpcHeaders = Readonly<Record<string, string>>;

/** What is left out on this wire is empty. */
const EMPTY: Readonly<Record<string, object>> = { list: { tasks: [], nextPageToken: '' } };

const Service = makeGenericClientConstructor(A2AService as never, 'A2AService');

/** One call of 1.0; everything that was said, when it streams. */
export async function callGrpc(at: string, id: string, params: Body, headers: GrpcHeaders): Promise<GrpcCame> {
  const operation = OPERATIONS.find((row) => row.id === id);
  if (!operation) throw new Error(`there is no operation ${id}`);
  const rpc = `${operation.rpc[0]?.toLowerCase()}${operation.rpc.slice(1)}`;
  const codec = CODECS[operation.id];
  const shown = (value: Body) => {
    const json = codec.resultCodec.toJSON(value as never);
    return EMPTY[id] ? { ...EMPTY[id], ...(json as object) } : json;
  };
  const client = new Service(at, credentials.createInsecure()) as Body;
  const metadata = new Metadata();
  for (const [name, value] of Object.entries({ 'a2a-version': '1.0', ...headers }))
    if (value) metadata.set(name, value);
  const input = codec.requestCodec.fromJSON(params);
  try {
    if ('streams' in operation) {
      const said: unknown[] = [];
      for await (const each of client[rpc](input, metadata)) said.push(shown(each));
      return { ...FINE, result: said };
    }
    const came = await new Promise<Body>((resolve, reject) =>
      client[rpc](input, metadata, (error: ServiceError | null, value: Body) =>
        error ? reject(error) : resolve(value),
      ),
    );
    return { ...FINE, result: shown(came) };
  } catch (thrown) {
    return failure(thrown as ServiceError);
  } finally {
    client.close();
  }
}

const FINE = { status: 0, message: '', reason: undefined };

function failure({ code, details, metadata, message }: ServiceError): GrpcCame {
  if (code === undefined) throw new Error(message);
  const [bin] = metadata?.get('grpc-status-details-bin') ?? [];
  const info = bin ? decodeStatus(bin as Buffer).details.map(({ value }) => decodeErrorInfo(Buffer.from(value))) : [];
  return { status: code, message: details, reason: info[0]?.reason, result: undefined };
}

/** One call of 0.3, with parameters and results in the shapes its JSON-RPC has. */
export async function callOldGrpc(at: string, id: string, params: Body, headers: GrpcHeaders): Promise<GrpcCame> {
  let status: { code: number; details: string } | undefined;
  const watch: Interceptor = (options, next) =>
    new InterceptingCall(next(options), {
      start(metadata, _listener, go) {
        go(metadata, {
          onReceiveStatus(came, on) {
            status = came;
            on(came);
          },
        });
      },
    });
  const transport = new OldTransport({
    endpoint: at,
    grpcChannelCredentials: credentials.createInsecure(),
    grpcCallOptions: { interceptors: [watch] },
  });
  const options = {
    serviceParameters: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== '')),
  };
  const all = async (stream: AsyncGenerator<unknown>) => {
    const said: unknown[] = [];
    for await (const each of stream) said.push(each);
    return said;
  };
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    send: () => transport.sendMessage(params, options),
    stream: () => all(transport.sendMessageStream(params, options)),
    get: () => transport.getTask(params, options),
    cancel: () => transport.cancelTask(params, options),
    subscribe: () => all(transport.resubscribeTask(params, options)),
    createPush: () => transport.setTaskPushNotificationConfig(params, options),
    getPush: () => transport.getTaskPushNotificationConfig(params, options),
    listPush: () => transport.listTaskPushNotificationConfig(params, options),
    deletePush: () => transport.deleteTaskPushNotificationConfig(params, options),
    card: () => transport.getExtendedAgentCard(options),
  };
  try {
    return { ...FINE, result: (await calls[id]?.()) ?? null };
  } catch (thrown) {
    if (!status) throw thrown;
    return { status: status.code, message: status.details, reason: undefined, result: undefined };
  } finally {
    (transport as unknown as { grpcClient: { close(): void } }).grpcClient.close();
  }
}
