/** What can be said when an act is put to the gate, and how it came out. */
import type { Action, Actor, Decision } from '../../model/actions.ts';
import type { Answer } from '../../model/asks.ts';
import type { MountedTool } from '../../model/commands.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { Unit } from '../../ports/index.ts';
import type { FoundTool } from '../tools/catalog.ts';

export interface RuleOptions {
  readonly actor: Actor;
  readonly signal: AbortSignal;
  /** How long the asker may be kept waiting, from the moment it asks; absent means until the question is answered or expires. */
  readonly waitMs?: number | undefined;
  /** How long policy may take; absent means as long as its engines need. */
  readonly decideMs?: number | undefined;
  /** A deferral is returned to the asker instead of being waited out here. */
  readonly deferred?: 'returned' | undefined;
  /** The asker can run rewritten arguments. */
  readonly takesArguments: boolean;
  /** The process that runs the task, for an act of its agent: nothing is recorded of it once another one does. */
  readonly runBy?: string | undefined;
  /** The agent's own words about the act: shown as such, never as the question. */
  readonly question?: string;
  /** The request is in the log already, since before a crash. */
  readonly requested?: boolean;
  /** The claim on the call id is in the log already. */
  readonly claimed?: boolean;
  readonly ext?: JsonObject | undefined;
  /** The request context, passed unread to the backend that runs the act. */
  readonly context?: object | undefined;
  /** The tool of the call, where its door has looked it up. */
  readonly tool?: MountedTool | undefined;
  /** Fires when the asker no longer needs the answer. */
  readonly withdrawn?: AbortSignal | undefined;
  /**
   * The act came from a client as a request of its own: it counts against request limits, and a request over the limit is refused
   * at once.
   */
  readonly request?: boolean;
  /** The tool's server does not list it. */
  readonly unlisted?: boolean;
  /** Called with the id of the question that people are asked. */
  readonly asked?: ((askId: string) => void) | undefined;
  /** Present where the decision on a call without effects may wait for its result: see `CommandEnvelope`. */
  readonly unwritten?: ((write: () => Promise<void>) => void) | undefined;
}

/** The time by which the asker must be answered, on the monotonic clock of the process. */
export type Holding = RuleOptions & { readonly holdUntil: number };

export type Authorization =
  | {
      readonly kind: 'go';
      readonly action: Action;
      readonly decision: Decision;
      readonly answer?: Answer;
      /** The decision, not yet written: it is committed before the call or together with its end, and nothing is answered before. */
      readonly unwritten?: Unit;
    }
  | { readonly kind: 'no'; readonly reason: string; readonly decision: Decision; readonly answer?: Answer }
  /** The asker stopped waiting; the question stays open. */
  | { readonly kind: 'open'; readonly ask_id: string; readonly decision: Decision };

/** The decision for a caller that understands only yes, no, or other arguments. */
export function asDecision(authorization: Authorization): Decision {
  const { decision } = authorization;
  if (authorization.kind === 'open' || decision.verdict === 'defer') return decision;
  if (authorization.kind === 'no') return { ...decision, verdict: 'block', reason: authorization.reason };
  // An approval of rewritten arguments covers no others.
  if (decision.arguments) return { ...decision, verdict: 'modify', arguments: authorization.action.arguments };
  return decision.verdict === 'escalate' ? { ...decision, verdict: 'allow' } : decision;
}

/** Facts about an act that the gateway runs itself: the call id it claims, and its tool, where a mounted one runs it. */
export interface Held {
  readonly claim?: Pick<Unit, 'idempotency'> | undefined;
  readonly tool?: FoundTool | undefined;
  /** A refusal that needs no rule: it is recorded as the decision. */
  readonly refused?: Decision | undefined;
  /** The decision on an act that no person is asked about: it stands where the gate would ask. */
  readonly unasked?: ((decision: Decision) => Decision) | undefined;
  /** The decision may be written together with the end of the call. */
  readonly joins?: boolean | undefined;
}
