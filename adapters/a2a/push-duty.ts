/**
 * Which of several gateways on one log delivers: the one an address was given to, and once that one is gone, whoever finds
 * out first. A gateway holds its own name for as long as it lives, so whoever can take the name of another knows that it is gone,
 * and as long as it keeps that name nobody else acts in the same place.
 */
import { type Closable, type Deps, Fault } from '../../src/index.ts';

export interface Duty {
  /** This gateway's own name, written to what it delivers. */
  readonly name: string;
  /** Takes over from everyone who is gone, now and from time to time. */
  begin(): Promise<void>;
  /** Its name is free for others once the last of its work is done. */
  end(last: () => Promise<unknown>): Promise<void>;
}

export interface DutyDeps {
  readonly deps: Pick<Deps, 'lease' | 'ids' | 'log'>;
  readonly everyMs: number;
  /** Who has something to deliver. */
  names(): Promise<Iterable<string>>;
  takeOver(from: string): Promise<void>;
}

export function createDuty({ deps, everyMs, names, takeOver }: DutyDeps): Duty {
  const { lease, ids, log } = deps;
  const name = ids.next('gateway');
  let held: Closable | undefined;
  let next: NodeJS.Timeout | undefined;
  let looking: Promise<void> = Promise.resolve();
  let over = false;

  async function look(): Promise<void> {
    for (const other of new Set(await names())) {
      if (over || other === name) continue;
      const place = await lease?.(leaseOf(other));
      if (lease && !place) continue;
      try {
        await takeOver(other);
      } finally {
        await place?.close();
      }
    }
  }

  function lookAgain(): void {
    next = setTimeout(() => {
      looking = look()
        .catch((cause) => log.warn({ err: cause }, 'looking for push notifications nobody delivers failed'))
        .finally(() => over || lookAgain());
    }, everyMs).unref();
  }

  return {
    name,
    async begin() {
      held = await lease?.(leaseOf(name));
      if (lease && !held) throw new Fault('conflict', `another gateway on this log is called ${name}`);
      await look();
      // Nobody can be gone where nobody else can be.
      if (lease) lookAgain();
    },
    async end(last) {
      over = true;
      clearTimeout(next);
      await looking;
      try {
        await last();
      } finally {
        await held?.close();
      }
    },
  };
}

function leaseOf(name: string): string {
  return `a2a.push:${name}`;
}
