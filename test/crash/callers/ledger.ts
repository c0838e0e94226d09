/** What callers outside asked for, and the answers they received. Never corrected by the gateway. */

/** One call, known by words in its arguments that no other call has. */
export interface Called {
  readonly nonce: string;
  readonly by: CallerKind;
  /** A call without effects: its decision and its result are one commit, so one that nobody answered may have left no trace. */
  readonly withoutEffect: boolean;
  /** What its caller received: how it came out, or for a supervised agent only that it may or may not run. */
  received?: 'succeeded' | 'refused' | 'may run';
}

export const CALLERS = ['mcp over stdio', 'ahp over stdio', 'acp relay', 'mcp over http', 'ahp over http'] as const;
export type CallerKind = (typeof CALLERS)[number];

const LOOK = 'look';

/** What callers of MCP call: now and then a tool that a rule refuses, and in turns one that writes and one that only looks. */
export function toolOf(count: number): string {
  if (count % 7 === 1) return 'forbidden';
  return count % 2 === 0 ? LOOK : 'note';
}

export interface CallLedger {
  readonly calls: Called[];
  want(by: CallerKind, nonce: string, tool?: string): Called;
}

export function createCallLedger(): CallLedger {
  const calls: Called[] = [];
  return {
    calls,
    want(by, nonce, tool) {
      const called: Called = { nonce, by, withoutEffect: tool === LOOK };
      calls.push(called);
      return called;
    },
  };
}
