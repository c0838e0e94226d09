/** Everything the console needs beyond the bridge, handed in by the runtime. Each route checks its caller before it calls one. */
import type { Actor } from '../model/actions.ts';

export interface ConsoleSession {
  readonly id: string;
  readonly how: string;
  readonly actor: Omit<Actor, 'doors' | 'door'>;
  readonly created_at: string;
  readonly expires_at: string;
}

export interface SignedIn {
  readonly cookie: string;
  readonly proof: string;
  readonly session: ConsoleSession;
}

export interface SignIn {
  /** Undefined when the code is wrong, used or too old. */
  withCode(code: string, host: string): Promise<SignedIn | undefined>;
  /** Throws `unauthenticated` for a key that is not valid. */
  withKey(key: string, host: string, address: string | undefined): Promise<SignedIn>;
  find(cookie: string, proof: string, host: string | undefined): Promise<ConsoleSession | undefined>;
  end(id: string): Promise<unknown>;
  /** The bearer token that stands for both secrets. */
  token(cookie: string, proof: string): string;
}

export interface ConsoleServices {
  readonly signIn: SignIn;
  /** The id of the newest event. */
  tip(): Promise<string | undefined>;
  readonly rules: RulesService;
  /** Doors, by the address each is reached at. */
  doors(): readonly DoorAddress[];
  /** API keys without their values. */
  keys(): Promise<readonly object[]>;
  /** Heads of the log that were signed, and the witnesses that keep them. */
  proof(): Promise<object>;
  /** Tool servers and harnesses of the configuration, by name and protocol. */
  parts(): readonly { readonly kind: string; readonly name: string; readonly protocol: string }[];
}

export interface DoorAddress {
  readonly name: string;
  readonly protocol: string;
  readonly open: boolean;
}

export interface RuleSource {
  readonly name: string;
  readonly text: string;
  readonly editable: boolean;
}

export interface RulesInForce {
  /** Of the files as they are now; `in_force` is what decides. They differ while a file has a mistake. */
  readonly version: string;
  readonly in_force: string | null;
  readonly count: number;
  readonly cedar: string;
  readonly ids: readonly string[];
  readonly sources: readonly RuleSource[];
  readonly history: readonly {
    readonly at: string;
    /** `saved` in the console, then `loaded` or `refused` by the gateway. */
    readonly outcome: string;
    readonly version: string | null;
    readonly rules: number | null;
    readonly by: string | null;
  }[];
}

export type ComparedDecision =
  | {
      readonly object: 'difference';
      readonly kind: string;
      readonly event_id: string;
      readonly tool: string;
      readonly target: string | null;
      readonly actor: string;
      readonly before: string;
      readonly after: string;
      readonly rule: string | null;
      readonly why: string;
    }
  | {
      readonly object: 'progress' | 'summary';
      readonly done: number;
      readonly same: number;
      readonly changed: number;
      readonly unknown: number;
    };

export interface RulesService {
  inForce(): Promise<RulesInForce>;
  check(name: string, text: string): Promise<{ readonly problems: readonly object[]; readonly rules: number }>;
  compare(name: string, text: string, sinceMs: number, signal: AbortSignal): AsyncIterable<ComparedDecision>;
  save(name: string, text: string, by: string): Promise<{ readonly version: string | null }>;
}
