/**
 * What the SDK's gRPC service lacks for a call: a stream waits for its reader instead of piling up in memory, a call belongs to
 * the trace it came with, and a refusal that the protocol does not define carries its reason in the trailer, under our own
 * domain, as on the other bindings.
 */

import type { User } from '@a2a-js/sdk/server';
import { ERROR_DOMAIN } from '../../../mappings/a2a.ts';
import type { Deps } from '../../../src/index.ts';
import { asText } from '../../../src/index.ts';
import { type ErrorReply, toErrorReply } from '../server/refusal.ts';
import { roomIn, type StreamWriter } from './backpressure.ts';

export interface GrpcCall extends StreamWriter {
  readonly metadata: { get(name: string): unknown[]; set(name: string, value: string): void };
  on(event: 'cancelled', listener: () => void): unknown;
  /** `host:port` of the peer. */
  getPeer?(): string;
  emit(event: string, ...args: unknown[]): boolean;
}

type Grpc = typeof import('@grpc/grpc-js');
type Wire = typeof import('@bufbuild/protobuf/wire');
interface Failed {
  readonly code: number;
  readonly details: string;
  readonly metadata?: object;
}
type Answer = (failed: Failed | null, ...rest: unknown[]) => void;
type Service = Readonly<Record<string, (call: GrpcCall, answer?: Answer) => unknown>>;

export interface GrpcCalls {
  /** Links this caller to this call. */
  from(user: User, call: GrpcCall): void;
  /** Remembers the error, to be reported when the call is answered. */
  failed(of: User | GrpcCall | undefined, thrown: unknown): void;
  /** False when the reader is gone, or has read nothing for too long. */
  room(user: User | undefined): Promise<boolean>;
  /** The service with reasons on its refusals and each call in its trace. */
  explained(service: object): object;
}

export type GrpcRules = Pick<Deps, 'log' | 'inTrace'> & { readonly stallMs: number };

/** The trace position of a call. A header that is present twice is ignored. */
export function traceParentIn({ metadata }: GrpcCall): string | undefined {
  const headers = metadata.get('traceparent').map(String);
  return headers.length === 1 ? headers[0] : undefined;
}

export function createGrpcCalls(grpc: Grpc, wire: Wire, rules: GrpcRules): GrpcCalls {
  const calls = new WeakMap<object, GrpcCall>();
  const reasons = new WeakMap<object, ErrorReply>();

  function explain(call: GrpcCall, failed: Failed): Failed {
    const why = reasons.get(call);
    if (!why || failed.metadata || why.info.domain === ERROR_DOMAIN) return failed;
    const metadata = new grpc.Metadata();
    metadata.set('grpc-status-details-bin', statusDetails(wire, failed, why));
    if (why.retryAfterMs !== undefined) metadata.set('retry-after', asText(Math.ceil(why.retryAfterMs / 1000)));
    return { ...failed, metadata };
  }

  return {
    from: (user, call) => void calls.set(user, call),
    failed(of, thrown) {
      const call = of && (calls.get(of) ?? of);
      if (call) reasons.set(call, toErrorReply(thrown));
    },
    async room(user) {
      const call = user && calls.get(user);
      const how = call ? await roomIn(call, 'cancelled', rules.stallMs) : 'room';
      if (how === 'late') rules.log.warn({}, 'a gRPC stream was ended: its client stopped reading');
      return how === 'room';
    },
    explained: (service) =>
      Object.fromEntries(
        Object.entries(service as Service).map(([name, handle]) => [
          name,
          (call: GrpcCall, answer?: Answer) => {
            const traced = rules.inTrace ?? ((_, work) => work());
            if (answer) {
              const explaining: Answer = (failed, ...rest) => answer(failed && explain(call, failed), ...rest);
              return traced(traceParentIn(call), () => handle(call, explaining));
            }
            const emit = call.emit.bind(call);
            call.emit = (event, ...args) =>
              event === 'error' ? emit(event, explain(call, args[0] as Failed)) : emit(event, ...args);
            return traced(traceParentIn(call), () => handle(call));
          },
        ]),
      ),
  };
}

/** A `google.rpc.Status` with one `ErrorInfo`; the SDK writes these for its own reasons only. */
function statusDetails({ BinaryWriter }: Wire, { code, details }: Failed, { reason, info }: ErrorReply): Buffer {
  const text = (at: number) => (at << 3) | 2;
  const about = new BinaryWriter();
  about.uint32(text(1)).string(reason);
  about.uint32(text(2)).string(asText(info.domain));
  const any = new BinaryWriter();
  any.uint32(text(1)).string(asText(info['@type']));
  any.uint32(text(2)).bytes(about.finish());
  const status = new BinaryWriter();
  status.uint32(1 << 3).int32(code);
  status.uint32(text(2)).string(details);
  status.uint32(text(3)).bytes(any.finish());
  return Buffer.from(status.finish());
}
