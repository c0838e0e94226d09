/**
 * A gateway that can die. From the moment of its death nothing it asked for is ever answered, nothing more is written, and
 * its leases are free: what another gateway finds is what a killed process leaves behind.
 */
import type { Store } from '../../../src/ports/index.ts';
import { openTestGateway, REAL_TIME, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';

/** Which of the commits that wrote something is the last, counted from when this is set. */
export interface Fate {
  readonly commit: number;
  /** The commit is lost, or written and nobody hears of it. */
  readonly when: 'before' | 'after';
}

export interface MortalGateway extends TestGateway {
  die(): Promise<void>;
  /** Resolves when fate has struck; `written` tells how many commits there were until now. */
  doom(fate: Fate): Promise<void>;
  readonly written: () => number;
}

/** What is long, slow or dead is seen to be soon. */
export const settings = { inlineLimit: 300, graceMs: 50, sweepMs: 50 };

export async function openMortal(options: TestGatewayOptions = {}): Promise<MortalGateway> {
  const { wrap, ...fate } = mortality();
  return { ...(await openTestGateway({ ...REAL_TIME, ...options, store: wrap, dies: true })), ...fate };
}

function mortality() {
  let inner: Store | undefined;
  let dead = false;
  let count = 0;
  let fate: { at: number; when: Fate['when']; struck: () => void } | undefined;
  const never = new Promise<never>(() => {});

  function received<T>(answer: Promise<T>): Promise<T> {
    return answer.then(
      (value) => (dead ? never : value),
      (reason) => (dead ? never : Promise.reject(reason)),
    );
  }

  function strike(): void {
    dead = true;
    fate?.struck();
  }

  function mortalIterable<T>(items: AsyncIterable<T>): AsyncIterable<T> {
    return {
      [Symbol.asyncIterator]() {
        const source = items[Symbol.asyncIterator]();
        return {
          next: () => (dead ? never : received(source.next())),
          return: async () => (await source.return?.()) ?? { value: undefined, done: true as const },
        };
      },
    };
  }

  return {
    wrap(store: Store): Store {
      inner = store;
      const wrapped: Record<string, unknown> = {};
      for (const [name, member] of Object.entries(store)) {
        wrapped[name] = (...args: never[]) => {
          if (name === 'trouble' || name === 'room') return store[name]();
          if (name === 'read' || name === 'follow')
            return mortalIterable((member as (...a: never[]) => never)(...args));
          return dead ? never : received((member as (...a: never[]) => Promise<unknown>)(...args));
        };
      }
      const commit: Store['commit'] = (unit) => {
        if (dead) return never;
        return received(
          store.commit({
            ...unit,
            decide(at) {
              if (dead) throw new Error('nobody is there to write');
              const draft = unit.decide(at);
              if (draft.events.length === 0) return draft;
              if (fate && count + 1 === fate.at && fate.when === 'before') {
                strike();
                throw new Error('nobody is there to write');
              }
              count += 1;
              if (fate && count === fate.at) strike();
              return draft;
            },
          }),
        );
      };
      return { ...(wrapped as unknown as Store), commit };
    },
    doom({ commit, when }: Fate): Promise<void> {
      return new Promise((resolve) => {
        fate = { at: count + commit, when, struck: resolve };
      });
    },
    async die() {
      dead = true;
      await inner?.close();
    },
    written: () => count,
  };
}
