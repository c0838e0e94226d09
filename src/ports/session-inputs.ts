/**
 * Private named inputs of a session: values that a client gives to the agent at work, and that no log, event, receipt or error
 * contains. The command is the one of the Agents Protocol (`/v1/sessions/{id}/inputs`), member for member.
 */
export interface InputSpec {
  readonly name: string;
  /** A secret is redacted everywhere; a variable is shown. A secret when absent. */
  readonly kind?: 'secret' | 'variable';
  readonly lifetime?: { readonly kind: 'session' | 'saved' } | { readonly kind: 'until'; readonly unix_ms: number };
  /** Any tool of the session, or requests to these https origins only. */
  readonly usage?:
    | { readonly kind: 'session_tools' }
    | { readonly kind: 'websites'; readonly origins: readonly string[] };
}

export interface InputGrant {
  readonly spec: InputSpec;
  readonly value: string;
}

export type InputCommand =
  | { readonly kind: 'list' }
  | (InputGrant & { readonly kind: 'put'; readonly replace?: boolean })
  | { readonly kind: 'remove'; readonly name: string }
  | {
      readonly kind: 'sync';
      readonly snapshot: {
        readonly sourceId: string;
        readonly revision: number;
        readonly inputs: readonly InputGrant[];
        /** Values that were secrets before: redacted, never used. */
        readonly redactions: readonly string[];
      };
    };

/** What may be shown of an input: the value of a variable, never that of a secret. */
export interface InputDescription extends InputSpec {
  readonly value?: string;
}

/** The inputs of a session, as an agent with the ability `inputs` reads them while it works. */
export interface SessionInputsView {
  /** Grows with every change. */
  readonly revision: number;
  names(): readonly string[];
  /** The value for a tool of the session; undefined when there is none, or when it may be sent to certain websites only. */
  value(name: string): string | undefined;
  /** Everything, for an agent that keeps the rules of each input itself. */
  grants(): readonly InputGrant[];
}
