/** What callers outside asked for, and the answers they received. Never corrected by the gateway. */

/** One call, known by words in its arguments that no other call has. */
export interface Called {
  readonly nonce: string;
  readonly by: CallerKind;
  /** What its caller received: how it came out, or for a supervised agent only that it may or may not run. */
  received?: 'succeeded' | 'refused' | 'may run';
}

export const CALLERS = ['mcp over stdio', 'ahp over stdio', 'acp relay', 'mcp over http', 'ahp over http'] as const;
export type CallerKind = (typeof CALLERS)[number];

export interface CallLedger {
  readonly calls: Called[];
  want(by: CallerKind, nonce: string): Called;
}

export function createCallLedger(): CallLedger {
  const calls: Called[] = [];
  return {
    calls,
    want(by, nonce) {
      const called: Called = { nonce, by };
      calls.push(called);
      return called;
    },
  };
}
