/** Everything the console needs beyond the bridge, handed in by the runtime. Each route checks its caller before it calls one. */

import type { Actor } from '../model/actions.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Effect } from '../model/words.ts';
import type { FrameView } from '../ports/index.ts';
import type { ComparedDecision, RuleProblem, RulesInForce, TestedCase } from './rule-answers.ts';

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

export interface OidcSignIn {
  readonly name: string;
  begin(origin: string): Promise<{ readonly location: string; readonly binding: string }>;
  /** Throws `unauthenticated` for an answer that is not valid, and `permission_denied` for a person without a role. */
  end(answer: OidcAnswer, origin: string, host: string): Promise<SignedIn>;
}

export interface OidcAnswer {
  readonly code: string;
  readonly state: string;
  readonly binding: string;
  readonly iss?: string | undefined;
}

interface SignIn {
  /** Undefined when the code is wrong, used or too old. */
  withCode(code: string, host: string): Promise<SignedIn | undefined>;
  /** Sign-in at an OpenID provider. Undefined where none is configured. */
  readonly oidc: OidcSignIn | undefined;
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
  /** A signed head of the tree of receipts, the proof that it continues the one of this size, and the witnesses' state. */
  proof(from: number | undefined): Promise<object>;
  /** The proof that a receipt is in the tree, and the id of the one before it in its chain. Throws `not_found`. */
  inclusion(
    receipt: string,
  ): Promise<{ readonly head: object; readonly inclusion: object; readonly before: string | undefined }>;
  /** The protocols that tell events, each with a renderer of its own for one reading. */
  views(): ReadonlyMap<string, FrameView>;
  /** A tool's definition as a person who accepts it leaves it: with the effect that its server states. */
  acceptedPin(definition: JsonObject, by: string): { readonly body: JsonObject; readonly metadata: JsonObject };
  /** The effect that the server states for a definition. */
  statedEffect(definition: JsonObject): Effect;
  /** The health of the log and of the signing key. */
  health(): readonly PartHealth[];
  /** Tool servers and harnesses of the configuration, by name and protocol. */
  parts(): readonly { readonly kind: string; readonly name: string; readonly protocol: string }[];
}

/** `ready`, `unavailable`, or another word for what is known of it; a part that was never used is `unknown`. */
export interface PartHealth {
  readonly kind: string;
  readonly name: string;
  readonly state: string;
  readonly detail: string | null;
}

export interface DoorAddress {
  readonly name: string;
  readonly protocol: string;
  readonly open: boolean;
}

export interface RulesService {
  inForce(): Promise<RulesInForce>;
  check(name: string, text: string): Promise<{ readonly problems: readonly RuleProblem[]; readonly rules: number }>;
  compare(name: string, text: string, sinceMs: number, signal: AbortSignal): AsyncIterable<ComparedDecision>;
  /** The cases under the edited rules; problems when the cases cannot be read. */
  test(
    name: string,
    text: string,
    cases: string,
  ): Promise<{ readonly problems: readonly RuleProblem[]; readonly results: readonly TestedCase[] }>;
  /** Writes the cases into the file beside the rules. */
  saveCases(name: string, cases: string, by: string): Promise<{ readonly file: string }>;
  save(name: string, text: string, by: string): Promise<{ readonly version: string | null }>;
}
