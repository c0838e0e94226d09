/**
 * The gRPC binding, where one is configured: a port of its own and the same handler behind it. Its two packages are not
 * everybody's to install, so they are looked for only here, and said to be missing when they are.
 */
import { readFile } from 'node:fs/promises';
import type { A2ARequestHandler } from '@a2a-js/sdk/server';
import { type Closable, type Deps, Fault } from '../../src/index.ts';
import { isLoopback } from '../../src/wire/origin.ts';
import { Caller } from './caller.ts';
import type { A2aConfig, A2aSettings } from './config.ts';
import { plainVersion } from './exchange.ts';
import { speaking } from './face.ts';
import { toGrpcError } from './refusal.ts';

export interface GrpcDoor extends Closable {
  /** `host:port`, as cards name it. */
  readonly at: string;
}

type Grpc = typeof import('@grpc/grpc-js');

export async function serveGrpc(
  config: NonNullable<A2aConfig['grpc']>,
  handler: A2ARequestHandler,
  settings: A2aSettings,
  deps: Pick<Deps, 'authenticate' | 'log'>,
): Promise<GrpcDoor> {
  const { grpc, service, older } = await load();
  const host = config.host ?? '127.0.0.1';
  if (!config.tls && !isLoopback(host)) {
    throw new Fault('permission_denied', `gRPC on ${host} needs tls: without it tokens can be read on the way`);
  }
  const statuses = grpc.status as unknown as Record<string, unknown>;
  const face = speaking(handler, (thrown) => toGrpcError(thrown, statuses));
  const userBuilder = async (call: GrpcCall) => {
    try {
      const [version] = call.metadata.get('a2a-version').map(String);
      // Looked at after this, and as a text.
      if (version) call.metadata.set('a2a-version', plainVersion(version));
      const given = call.metadata.get('authorization').map(String);
      const bearer = given.length === 1 ? /^bearer +(\S+)$/i.exec(given[0] as string)?.[1] : undefined;
      const actor = { ...(await deps.authenticate(bearer)), door: 'a2a' };
      const gone = new AbortController();
      call.on('cancelled', () => gone.abort());
      const [key] = call.metadata.get('idempotency-key').map(String);
      const [last] = call.metadata.get('last-event-id').map(String);
      return new Caller({ actor, signal: gone.signal, binding: 'GRPC', idempotencyKey: key, lastEventId: last });
    } catch (thrown) {
      throw toGrpcError(thrown, statuses);
    }
  };
  const server = new grpc.Server({
    'grpc.max_receive_message_length': settings.jsonLimit,
    'grpc.keepalive_time_ms': 30_000,
  });
  server.addService(service.A2AService, service.grpcService({ requestHandler: face, userBuilder }) as never);
  if (settings.legacy) {
    const own = older.legacyGrpcService({ requestHandler: face, userBuilder });
    server.addService(older.LegacyA2AService, own as never);
  }
  const port = await new Promise<number>((resolve, reject) => {
    credentialsOf(config, grpc).then((credentials) => {
      server.bindAsync(`${host}:${config.port}`, credentials, (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    }, reject);
  });
  return {
    at: config.public ?? `${host}:${port}`,
    async close() {
      const over = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      const late = setTimeout(() => server.forceShutdown(), 500).unref();
      await over;
      clearTimeout(late);
    },
  };
}

interface GrpcCall {
  readonly metadata: { get(name: string): unknown[]; set(name: string, value: string): void };
  on(event: 'cancelled', heard: () => void): unknown;
}

async function load() {
  try {
    const [grpc, service, older] = await Promise.all([
      import('@grpc/grpc-js'),
      import('@a2a-js/sdk/server/grpc'),
      import('@a2a-js/sdk/compat/v0_3/server/grpc'),
    ]);
    return { grpc, service, older };
  } catch (cause) {
    const message = 'doors.a2a.grpc needs two packages that are not here: npm install @grpc/grpc-js @bufbuild/protobuf';
    throw new Fault('invalid_request', message, { cause });
  }
}

async function credentialsOf({ tls }: NonNullable<A2aConfig['grpc']>, grpc: Grpc) {
  if (!tls) return grpc.ServerCredentials.createInsecure();
  const [cert_chain, private_key] = await Promise.all([readFile(tls.cert), readFile(tls.key)]);
  return grpc.ServerCredentials.createSsl(null, [{ cert_chain, private_key }]);
}
