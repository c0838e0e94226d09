/**
 * The gRPC binding, where one is configured: its own port, with the same handler behind it. Its two packages are optional
 * dependencies, so only this file imports them, and it reports them when they are missing.
 */
import { readFile } from 'node:fs/promises';
import type { A2ARequestHandler } from '@a2a-js/sdk/server';
import { type Closable, type Deps, Fault } from '../../../src/index.ts';
import { isLoopback } from '../../../src/transport/http/origin.ts';
import { readTraceParent, traceMembers } from '../../../src/transport/outbound/trace-context.ts';
import type { A2aConfig, A2aSettings } from '../config.ts';
import { PeerUser } from '../server/caller.ts';
import { keyOf, plainVersion } from '../server/exchange.ts';
import { toGrpcError } from '../server/refusal.ts';
import { mapErrors } from './error-mapping.ts';
import { createGrpcCalls, type GrpcCall, traceParentIn } from './grpc-calls.ts';

export interface GrpcDoor extends Closable {
  /** `host:port`, as in cards. */
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
  const statuses = grpc.status;
  const calls = createGrpcCalls(grpc, wire, { ...deps, stallMs: settings.stallMs });
  const mapped = mapErrors(handler, {
    words(thrown, context) {
      calls.failed(context?.user, thrown);
      return toGrpcError(thrown, statuses);
    },
    room: ({ user }) => calls.room(user),
  });
  const userBuilder = async (call: GrpcCall) => {
    try {
      const [version] = call.metadata.get('a2a-version').map(String);
      // The SDK reads it after this, and as a text.
      if (version) call.metadata.set('a2a-version', plainVersion(version));
      const headers = call.metadata.get('authorization').map(String);
      const bearer = headers.length === 1 ? /^bearer +(\S+)$/i.exec(headers[0] as string)?.[1] : undefined;
      const actor = {
        ...(await deps.authenticate(bearer, { address: call.getPeer?.().replace(/:\d+$/, '') })),
        door: 'a2a',
      };
      const gone = new AbortController();
      call.on('cancelled', () => gone.abort());
      const [last] = call.metadata.get('last-event-id').map(String);
      const trace = readTraceParent(traceParentIn(call) ?? '');
      const user = new PeerUser({
        actor,
        signal: gone.signal,
        binding: 'GRPC',
        idempotencyKey: keyOf(call.metadata.get('idempotency-key').map(String)),
        lastEventId: last,
        trace: traceMembers(trace),
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
    'grpc.keepalive_time_ms': settings.keepAliveMs,
  });
  const current = service.grpcService({ requestHandler: mapped, userBuilder: userBuilder as never });
  server.addService(service.A2AService, calls.explained(current) as never);
  if (settings.legacy) {
    const own = older.legacyGrpcService({ requestHandler: mapped, userBuilder: userBuilder as never });
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
      // A client that does not read its stream to the end must not delay our shutdown.
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
