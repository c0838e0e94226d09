/**
 * The gRPC binding, where one is configured: a port of its own and the same handler behind it. Its two packages are not
 * everybody's to install, so they are looked for only here, and said to be missing when they are.
 */
import { readFile } from 'node:fs/promises';
import type { A2ARequestHandler } from '@a2a-js/sdk/server';
import { type Closable, type Deps, Fault } from '../../src/index.ts';
import { isLoopback } from '../../src/wire/origin.ts';
import { readTraceParent } from '../../src/wire/trace-context.ts';
import { Caller } from './caller.ts';
import type { A2aConfig, A2aSettings } from './config.ts';
import { keyOf, plainVersion } from './exchange.ts';
import { speaking } from './face.ts';
import { createGrpcCalls, type GrpcCall, traceParentIn } from './grpc-calls.ts';
import { toGrpcError } from './refusal.ts';

export interface GrpcDoor extends Closable {
  /** `host:port`, as cards name it. */
  readonly at: string;
}

type Grpc = typeof import('@grpc/grpc-js');
/** How long open calls have to end by themselves when closing, and their connections after that. */
const GRACE_MS = 500;
const FORCED_MS = 200;

export async function serveGrpc(
  config: NonNullable<A2aConfig['grpc']>,
  handler: A2ARequestHandler,
  settings: A2aSettings,
  deps: Pick<Deps, 'authenticate' | 'log' | 'inTrace'>,
): Promise<GrpcDoor> {
  const { grpc, service, older, wire } = await load();
  const host = config.host ?? '127.0.0.1';
  if (!config.tls && !isLoopback(host)) {
    throw new Fault('permission_denied', `gRPC on ${host} needs tls: without it tokens can be read on the way`);
  }
  const statuses = grpc.status as unknown as Record<string, unknown>;
  const calls = createGrpcCalls(grpc, wire, { ...deps, stallMs: settings.stallMs });
  const face = speaking(handler, {
    words(thrown, context) {
      calls.failed(context?.user, thrown);
      return toGrpcError(thrown, statuses);
    },
    room: ({ user }) => calls.room(user),
  });
  const userBuilder = async (call: GrpcCall) => {
    try {
      const [version] = call.metadata.get('a2a-version').map(String);
      // Looked at after this, and as a text.
      if (version) call.metadata.set('a2a-version', plainVersion(version));
      const given = call.metadata.get('authorization').map(String);
      const bearer = given.length === 1 ? /^bearer +(\S+)$/i.exec(given[0] as string)?.[1] : undefined;
      const actor = {
        ...(await deps.authenticate(bearer, { address: call.getPeer?.().replace(/:\d+$/, '') })),
        door: 'a2a',
      };
      const gone = new AbortController();
      call.on('cancelled', () => gone.abort());
      const [last] = call.metadata.get('last-event-id').map(String);
      const trace = readTraceParent(traceParentIn(call) ?? '');
      const user = new Caller({
        actor,
        signal: gone.signal,
        binding: 'GRPC',
        idempotencyKey: keyOf(call.metadata.get('idempotency-key').map(String)),
        lastEventId: last,
        traceId: trace?.trace_id,
      });
      calls.from(user, call);
      return user;
    } catch (thrown) {
      calls.failed(call, thrown);
      throw toGrpcError(thrown, statuses);
    }
  };
  const server = new grpc.Server({
    'grpc.max_receive_message_length': settings.jsonLimit,
    'grpc.keepalive_time_ms': 30_000,
  });
  const current = service.grpcService({ requestHandler: face, userBuilder: userBuilder as never });
  server.addService(service.A2AService, calls.explained(current) as never);
  if (settings.legacy) {
    const own = older.legacyGrpcService({ requestHandler: face, userBuilder: userBuilder as never });
    server.addService(older.LegacyA2AService, calls.explained(own) as never);
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
      // Whoever does not read its stream to the end does not keep us from leaving.
      await new Promise<void>((resolve) => {
        const late = setTimeout(() => {
          server.forceShutdown();
          setTimeout(resolve, FORCED_MS);
        }, GRACE_MS);
        server.tryShutdown(() => {
          clearTimeout(late);
          resolve();
        });
      });
    },
  };
}

async function load() {
  try {
    const [grpc, service, older, wire] = await Promise.all([
      import('@grpc/grpc-js'),
      import('@a2a-js/sdk/server/grpc'),
      import('@a2a-js/sdk/compat/v0_3/server/grpc'),
      import('@bufbuild/protobuf/wire'),
    ]);
    return { grpc, service, older, wire };
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
