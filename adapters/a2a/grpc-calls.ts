/**
 * What the SDK's gRPC service leaves to us about a call: a stream waits for its reader instead of piling up in memory, a call
 * belongs to the trace it came with, and a refusal the protocol has no word for says its reason in the trailer, under our own
 * domain, as it does on the other bindings.
 */

import type { User } from '@a2a-js/sdk/server';
import { ERROR_DOMAIN } from '../../mappings/a2a.ts';
import type { Deps } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { type Line, roomIn } from './pace.ts';
import { type Said, said } from './refusal.ts';

export interface GrpcCall extends Line {
  readonly metadata: { get(name: string): unknown[]; set(name: string, value: string): void };
  on(event: 'cancelled', heard: () => void): unknown;
  /** `host:port` of the other end. */
  getPeer?(): string;
  emit(event: string, ...given: unknown[]): boolean;
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
  /** This caller came with this call. */
  from(user: User, call: GrpcCall): void;
  /** What went wrong, to be said when the call is answered. */
  failed(of: User | GrpcCall | undefined, thrown: unknown): void;
  /** False when nobody reads any more, or not for too long. */
  room(user: User | undefined): Promise<boolean>;
  /** The service with its refusals explained, each call in the trace it came with. */
  explained(service: object): object;
}

export type GrpcRules = Pick<Deps, 'log' | 'inTrace'> & { readonly stallMs: number };

/** Where in somebody's trace a call stands. Said twice, it is said by nobody. */
export function traceParentIn({ metadata }: GrpcCall): string | undefined {
  const given = metadata.get('traceparent').map(String);
  return given.length === 1 ? given[0] : undefined;
}

export function createGrpcCalls(grpc: Grpc, wire: Wire, rules: GrpcRules): GrpcCalls {
  const calls = new WeakMap<object, GrpcCall>();
  const reasons = new WeakMap<object, Said>();

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
      if (call) reasons.set(call, said(thrown));
    },
    async room(user) {
      const call = user && calls.get(user);
      const how = call ? await roomIn(call, 'cancelled', rules.stallMs) : 'room';
      if (how === 'late') rules.log.warn({}, 'a stream over gRPC ended: nobody read it for too long');
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
            call.emit = (event, ...given) =>
              event === 'error' ? emit(event, explain(call, given[0] as Failed)) : emit(event, ...given);
            return traced(traceParentIn(call), () => handle(call));
          },
        ]),
      ),
  };
}

/** A `google.rpc.Status` with one `ErrorInfo`; the SDK writes these for its own reasons only. */
function statusDetails({ BinaryWriter }: Wire, { code, details }: Failed, { reason, info }: Said): Buffer {
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
