/** Counts of the calls of mounted tools in this process, by server, tool and outcome, for operators. */
import type { ToolCallCount } from '../../ports/index.ts';

export interface CallCounts {
  note(
    call: { readonly server: string; readonly tool: string },
    outcome: ToolCallCount['outcome'],
    seconds: number,
  ): void;
  all(): readonly ToolCallCount[];
}

/** A server may name any number of tools; those beyond this many series are counted together. */
const MOST = 2_000;
const OTHERS = '(others)';

export function createCallCounts(): CallCounts {
  const counts = new Map<string, { -readonly [K in keyof ToolCallCount]: ToolCallCount[K] }>();
  return {
    note({ server, tool }, outcome, seconds) {
      const key = (name: string) => JSON.stringify([server, name, outcome]);
      const name = counts.has(key(tool)) || counts.size < MOST ? tool : OTHERS;
      const known = counts.get(key(name)) ?? { server, tool: name, outcome, calls: 0, seconds: 0 };
      known.calls += 1;
      known.seconds += seconds;
      counts.set(key(name), known);
    },
    all: () => [...counts.values()],
  };
}
