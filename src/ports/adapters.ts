/** A protocol as the house mounts it: what it offers, and what it is handed. */
import type { ReceiptSignature } from '../model/receipt.ts';
import type { AgentBackend } from './agents.ts';
import type { FrontDoor } from './doors.ts';
import type { Authenticate, HttpHost } from './http.ts';
import type { PolicyEngine } from './policy.ts';
import type { Closable } from './store.ts';
import type { Clock, Ids, Logger } from './surroundings.ts';
import type { ToolBackend } from './tools.ts';

export interface Deps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  /** A secret by its name in a vault. The value is known to the redactor before it is handed out. */
  secret(name: string): Promise<string>;
  /** Keeps a secret under its name, in the first vault that can be written. Absent: nothing can be kept. */
  keep?(name: string, value: string): Promise<void>;
  /** Does something about a secret while nobody else does, in any process. Absent where nothing can be kept. */
  alone?<T>(name: string, work: () => Promise<T>): Promise<T>;
  readonly http: HttpHost;
  readonly authenticate: Authenticate;
  /** Public receipt keys, for doors that publish them. */
  jwks(): object;
  /** Signs a text with the key receipts are signed with, for documents a door publishes. Absent: they go unsigned. */
  sign?(text: string): ReceiptSignature;
  /** A digest only this house can make, the same for good: also after the signing key was changed. */
  mac?(text: string): string;
  /** Why nothing can be written just now; undefined when all is well. */
  trouble?(): string | undefined;
  /** Runs `work` as part of the trace that a W3C `traceparent` names. For doors with a port of their own; absent: nobody traces. */
  inTrace?<T>(traceparent: string | undefined, work: () => T): T;
  /** As the store has it: held as long as this process lives. Undefined: someone living has it. Absent: nobody else shares the log. */
  lease?(name: string): Promise<Closable | undefined>;
}

/** Something an adapter can be mounted as, any number of times, each with a section of its own. */
export interface Part<T> {
  readonly configSchema: object;
  /** `name` is what the configuration calls it. */
  open(name: string, config: never, deps: Deps): T;
}

export interface Adapter<Config> {
  readonly name: string;
  readonly revision: string;
  /** Of its door: `doors.<adapter>`. */
  readonly configSchema: object;
  door?(config: Config, deps: Deps): FrontDoor;
  /** Tools that its door works with; mounted when the door is open, and given the same `deps`. */
  ownTools?(config: Config, deps: Deps): readonly ToolBackend[];
  /** `agents.<name>.<adapter>` */
  readonly backend?: Part<AgentBackend>;
  /** `tools.<name>.<adapter>` */
  readonly tools?: Part<ToolBackend>;
  /** `harnesses.<name>.<adapter>` */
  readonly policy?: Part<PolicyEngine>;
  /** `relays.<adapter>`: of its command that stands between two others. */
  readonly relay?: { readonly configSchema: object };
}
