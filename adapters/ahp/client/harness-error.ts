/** Why there is no decision. None of these is ever a yes. */
export type HarnessErrorKind =
  /** The harness could not be reached. */
  | 'transport'
  | 'timeout'
  /** The message is not a valid response. */
  | 'protocol'
  /** The response has another shape than a decision of this family. */
  | 'shape';

export class HarnessError extends Error {
  readonly kind: HarnessErrorKind;
  constructor(kind: HarnessErrorKind, message: string) {
    super(message);
    this.name = 'HarnessError';
    this.kind = kind;
  }
}
