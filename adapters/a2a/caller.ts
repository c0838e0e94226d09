/** Who calls, and for how long: the SDK hands this object through to the request handler on every binding. */
import type { ServerCallContext, User } from '@a2a-js/sdk/server';
import { EXTENSIONS } from '../../mappings/a2a.ts';
import type { Actor } from '../../src/index.ts';
import { Refusal } from './refusal.ts';

export interface CallOptions {
  readonly actor: Actor;
  /** Fires when whoever called is gone; the task goes on. */
  readonly signal: AbortSignal;
  readonly binding: 'JSONRPC' | 'HTTP+JSON' | 'GRPC';
  readonly idempotencyKey?: string | undefined;
  /** Where a reader was when its stream broke. */
  readonly lastEventId?: string | undefined;
  readonly traceId?: string | undefined;
}

export class Caller implements User {
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
  if (context.user instanceof Caller) return context.user.call;
  throw new Refusal('UNAUTHENTICATED', 'nobody was recognised');
}

const KNOWN: readonly string[] = Object.values(EXTENSIONS);
const NONE: ReadonlySet<string> = new Set();

/** Which of our extensions this call asked for; it is told so in return. Others are ignored, as the protocol says. */
export function activated(context: ServerCallContext): ReadonlySet<string> {
  if (!context.requestedExtensions?.length) return NONE;
  const wanted = context.requestedExtensions.filter((uri) => KNOWN.includes(uri));
  for (const uri of wanted) if (!context.activatedExtensions?.includes(uri)) context.addActivatedExtension(uri);
  return new Set(wanted);
}
