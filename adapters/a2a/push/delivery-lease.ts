/**
 * Decides which of several gateways on one log delivers: the gateway that received the configuration and, once that one is
 * gone, the first to notice. A gateway holds a lease on its own name while it runs, so a gateway that can acquire the name of
 * another knows that the other is gone, and while it holds that name no third gateway delivers in its stead.
 */
import { type Closable, type Deps, Fault, type HeldName, holdName } from '../../../src/index.ts';

export interface Duty {
  /** This gateway's own name, written into the configurations it delivers. */
  readonly name: string;
  /** Takes over from gateways that are gone, now and periodically. */
  begin(): Promise<void>;
  /** Releases the name once the last delivery is done. */
  end(last: () => Promise<unknown>): Promise<void>;
}

export interface DutyDeps {
  readonly deps: Pick<Deps, 'lease' | 'ids' | 'log'>;
  readonly everyMs: number;
  /** The gateways that have something to deliver. */
  names(): Promise<Iterable<string>>;
  takeOver(from: string): Promise<void>;
}

export function createDuty({ deps, everyMs, names, takeOver }: DutyDeps): Duty {
  const { lease, ids, log } = deps;
  const name = ids.next('gateway');
  let held: HeldName<Closable> | undefined;
  let next: NodeJS.Timeout | undefined;
  let looking: Promise<void> = Promise.resolve();
  let over = false;

  async function look(): Promise<void> {
    for (const other of new Set(await names())) {
      if (over || other === name) continue;
      const held = await lease?.(leaseOf(other));
      if (lease && !held) continue;
      try {
        await takeOver(other);
      } finally {
        await held?.close();
      }
    }
  }

  function lookAgain(): void {
    next = setTimeout(() => {
      looking = look()
        .catch((cause) => log.warn({ err: cause }, 'looking for undelivered push notifications failed'))
        .finally(() => over || lookAgain());
    }, everyMs).unref();
  }

  return {
    name,
    async begin() {
      held = lease && (await holdName(async () => await lease(leaseOf(name))));
      if (held && !held.current()) throw new Fault('conflict', `another gateway on this log is called ${name}`);
      await look();
      // Without leases there is no other gateway.
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
