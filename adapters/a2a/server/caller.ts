/** The caller and the lifetime of its call: the SDK passes this object to the request handler on every binding. */
import type { ServerCallContext, User } from '@a2a-js/sdk/server';
import { EXTENSIONS } from '../../../mappings/a2a.ts';
import type { Actor } from '../../../src/index.ts';
import type { TraceMembers } from '../../../src/transport/outbound/trace-context.ts';
import { Refusal } from './refusal.ts';

export interface CallOptions {
  readonly actor: Actor;
  /** Fires when the caller has disconnected; the task continues. */
  readonly signal: AbortSignal;
  readonly binding: 'JSONRPC' | 'HTTP+JSON' | 'GRPC';
  readonly idempotencyKey?: string | undefined;
  /** The reader's position when its stream broke. */
  readonly lastEventId?: string | undefined;
  /** The trace the request belongs to. */
  readonly trace?: TraceMembers | undefined;
}

export class PeerUser implements User {
  readonly call: CallOptions;

  constructor(call: CallOptions) {
    this.call = call;
  }

  get isAuthenticated(): boolean {
    return true;
  }

  get userName(): string {
    return this.call.actor.id;
  }
}

export function callOf(context: ServerCallContext): CallOptions {
  if (context.user instanceof PeerUser) return context.user.call;
  throw new Refusal('UNAUTHENTICATED', 'the caller is not authenticated');
}

const KNOWN: readonly string[] = Object.values(EXTENSIONS);
const NONE: ReadonlySet<string> = new Set();

/** The extensions of ours that this call requested; the response names them. Others are ignored, as the protocol says. */
export function activated(context: ServerCallContext): ReadonlySet<string> {
  if (!context.requestedExtensions?.length) return NONE;
  const wanted = context.requestedExtensions.filter((uri) => KNOWN.includes(uri));
  for (const uri of wanted) if (!context.activatedExtensions?.includes(uri)) context.addActivatedExtension(uri);
  return new Set(wanted);
}
