/** Why there is no decision. None of these is ever a yes. */
export type HarnessErrorKind =
  /** It could not be asked. */
  | 'transport'
  | 'timeout'
  /** It said something that is not an answer. */
  | 'protocol'
  /** It answered, and the answer has another shape than a decision of this family. */
  | 'shape';

export class HarnessError extends Error {
  readonly kind: HarnessErrorKind;
  constructor(kind: HarnessErrorKind, message: string) {
    super(message);
    this.name = 'HarnessError';
    this.kind = kind;
  }
}
