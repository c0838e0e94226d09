/** The port of a protocol adapter: the parts it offers (door, backends, policy, relay) and the dependencies the gateway hands it. */
import type { Actor } from '../model/actions.ts';
import type { CoreEvent, LeftOut } from '../model/events.ts';
import type { ReceiptSignature } from '../model/receipt.ts';
import type { Static, TSchema } from '../model/type.ts';
import type { AgentBackend } from './agents.ts';
import type { Bridge, FrontDoor } from './doors.ts';
import type { Authenticate, HttpHost } from './http.ts';
import type { Permissions, PolicyEngine } from './policy.ts';
import type { Closable, Lease } from './store.ts';
import type { Clock, Ids, Logger } from './surroundings.ts';
import type { ToolBackend } from './tools.ts';
import type { SecretUser } from './vaults.ts';

/** A frame that was refused and not forwarded, with the reason. */
export interface RefusedFrame {
  readonly protocol: string;
  /** The configured name of the peer that sent it. */
  readonly from: string;
  readonly method: string;
  readonly reason: string;
}

export interface Deps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  /**
   * Reads a secret by its name in a vault. The redactor knows the value before it is handed out. With `user`, only vaults open to
   * that user are asked. Without it, the secret belongs to the installation and is named by its configuration.
   */
  secret(name: string, user?: SecretUser): Promise<string>;
  /** The redactor knows this value from now on. For credentials that were obtained at run time and are in no vault. */
  learn?(secret: string): void;
  /** Stores a secret under its name, in the first writable vault. Absent: no vault is writable. */
  keep?(name: string, value: string): Promise<void>;
  /** Runs `work` under an exclusive lock on this secret, across processes. Absent where no vault is writable. */
  alone?<T>(name: string, work: () => Promise<T>): Promise<T>;
  readonly http: HttpHost;
  readonly authenticate: Authenticate;
  /** Whether access tokens of an authorization server are accepted, so that doors advertise only what works. */
  readonly oauth?: boolean;
  /** Evaluates policy for a hypothetical act, for doors whose clients ask. Absent: no answer is available. */
  readonly permissions?: Permissions;
  /** Public receipt keys, for doors that publish them. */
  jwks(): object;
  /** Signs a document that a door publishes, with the receipt key. Absent: such documents go unsigned. */
  sign?(text: string): ReceiptSignature;
  /** A keyed digest that only this installation can compute. It stays the same when the signing key is changed. */
  mac?(text: string): string;
  /** How long events are kept, in milliseconds; undefined keeps them for good. Absent: no events are removed. */
  retentionMs?(): number | undefined;
  /** Why the store cannot write at the moment; undefined when it can. */
  trouble?(): string | undefined;
  /** Runs `work` as part of the trace that a W3C `traceparent` names. For doors with a port of their own. Absent: tracing is off. */
  inTrace?<T>(traceparent: string | undefined, work: () => T): T;
  /** Records a refused frame that belongs to no call. Many frames of one sender share an event. Absent: there is no log here. */
  refused?(frame: RefusedFrame): void;
  /**
   * The store's lease: held as long as this process lives. Undefined: a live process holds it. Absent: no other process shares the
   * log.
   */
  lease?(name: string): Promise<(Closable & Pick<Partial<Lease>, 'lost'>) | undefined>;
  /**
   * The mark of the replica that holds the thing of this name; ours, when no live replica held it. For names that clients choose.
   * Absent: no other process serves this store.
   */
  hold?(key: string): Promise<string>;
}

/** What a part is opened with: the name of its configuration section, and the dependencies the gateway hands out. */
export interface PartContext extends Deps {
  readonly name: string;
}

/** A role of an adapter. It can be opened any number of times, each time with its own configuration section. */
export interface AdapterPart<T, Config = never> {
  /** JSON Schema of the section; `open` gets a section that was checked against it. */
  readonly configSchema: object;
  open(config: Config, context: PartContext): T;
}

/** A part whose `open` gets the type that its schema describes. */
export function part<S extends TSchema, T>(
  configSchema: S,
  open: (config: Static<S>, context: PartContext) => T,
): AdapterPart<T, Static<S>> {
  return { configSchema, open };
}

/** How a protocol tells events, for a person who wants to see the frame that an event becomes. It serves no client. */
export interface FrameView {
  /** The frames for this event, which follows those that were given before. */
  frames(event: CoreEvent): readonly object[] | Promise<readonly object[]>;
  /** The kinds of events that the protocol has no frame for, and why. */
  readonly leftOut: Readonly<Partial<Record<string, LeftOut>>>;
}

export interface Adapter {
  /** Absent: the protocol answers requests, and tells no events. */
  readonly view?: () => FrameView;
  readonly name: string;
  readonly revision: string;
  readonly parts: {
    /** `doors.<adapter>` */
    readonly door?: AdapterPart<FrontDoor>;
    /** `agents.<name>.<adapter>` */
    readonly backend?: AdapterPart<AgentBackend>;
    /** `tools.<name>.<adapter>` */
    readonly tools?: AdapterPart<ToolBackend>;
    /** `harnesses.<name>.<adapter>` */
    readonly policy?: AdapterPart<PolicyEngine>;
    /** `relays.<adapter>` */
    readonly relay?: AdapterPart<Relay>;
  };
}

/** Stands between a client and the agent whose command it was started with: frames pass unchanged, acts are decided first. */
export interface Relay {
  /** The agent behind the relay. The runtime mounts it, and the tasks of the client's prompts are its work. */
  readonly backend: AgentBackend;
  /** How long the agent may take to stop after a cancel. */
  readonly graceMs: number;
  /** Decides about the frames on `link`, the protocol's own pair of streams. The person is the one at the client. */
  attach(bridge: Bridge, person: Actor, link: never): Promise<OpenRelay>;
}

export interface OpenRelay {
  /** Resolve when all work of the relay has its end in the log. */
  editorGone(): Promise<void>;
  agentGone(why: string): Promise<void>;
}
