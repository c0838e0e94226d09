/** Where the stories play: one open store per test, a clock that moves when told to, and the way to open it again. */
import { afterEach, beforeEach } from 'vitest';
import type { EventDraft } from '../../../../src/model/events.ts';
import type { Clock, Committed, Projector, Store } from '../../../../src/ports/index.ts';
import { contractProjector } from '../projector.ts';

export interface OpenedStore {
  readonly store: Store;
  /** Close it and open the same log again. */
  reopen(): Promise<Store>;
  /** Another instance on the same log, beside the first. */
  second(): Promise<Store>;
  cleanup(): Promise<void>;
}
export interface ContractDeps {
  readonly clock: Clock;
  readonly projector: Projector;
}
export interface Scene {
  /** Always the one that is open now. */
  readonly store: Store;
  readonly clock: Clock & { set(time: string): void };
  append(...events: EventDraft[]): Promise<Committed>;
  /** Many events, several hundred to a unit. */
  fill(count: number, make: (n: number) => EventDraft): Promise<void>;
  reopen(): Promise<void>;
  second(): Promise<Store>;
}

/** One log, opened as often as a test wants; every store on it is closed at the end, before `remove` is called. */
export async function openedOn(another: () => Promise<Store>, remove = async () => {}): Promise<OpenedStore> {
  const all: Store[] = [];
  const open = async () => {
    const store = await another();
    all.push(store);
    return store;
  };
  let current = await open();
  return {
    store: current,
    async reopen() {
      await current.close();
      current = await open();
      return current;
    },
    second: open,
    async cleanup() {
      await Promise.all(all.map((store) => store.close()));
      await remove();
    },
  };
}

export function setScene(open: (deps: ContractDeps) => Promise<OpenedStore>): Scene {
  let opened: OpenedStore;
  let current: Store;
  let time = '';
  const clock = {
    now: () => time,
    set(next: string) {
      time = next;
    },
  };
  beforeEach(async () => {
    time = '2026-11-16T09:00:00.000Z';
    opened = await open({ clock, projector: contractProjector });
    current = opened.store;
  });
  afterEach(async () => {
    await opened.cleanup();
  });

  const store = new Proxy({} as Store, { get: (_, name) => current[name as keyof Store] });
  const append = (...events: EventDraft[]) => store.commit({ decide: () => ({ events }) });
  return {
    store,
    clock,
    append,
    async fill(count, make) {
      for (let from = 0; from < count; from += 500) {
        const size = Math.min(500, count - from);
        await append(...Array.from({ length: size }, (_, i) => make(from + i)));
      }
    },
    async reopen() {
      current = await opened.reopen();
    },
    second: () => opened.second(),
  };
}
