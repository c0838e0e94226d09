/** The store in memory keeps every promise a store makes; so does the engine on a database that answers over a network. */
import type { EngineOptions, EngineStore } from '../../src/store/engine/store.ts';
import { createStore } from '../../src/store/engine/store.ts';
import { createMemoryStore, openMemory } from '../../src/store/memory/index.ts';
import { createMemoryLog, type MemoryLog } from '../../src/store/memory/log.ts';
import { overNetwork } from './store/scenes/network.ts';
import { type ContractDeps, type OpenedStore, openedOn } from './store/scenes/scene.ts';
import { storeContract } from './store.ts';

type Open = (memory: MemoryLog, options: EngineOptions) => Promise<EngineStore>;

function opener(open: Open) {
  return (deps: ContractDeps): Promise<OpenedStore> => {
    const memory = createMemoryLog();
    return openedOn(() => open(memory, deps));
  };
}

/** One lock for each log. */
const locks = new WeakMap<MemoryLog, { held: Promise<unknown> }>();

function remote(writesAhead: boolean): Open {
  return async (memory, options) => {
    const lock = locks.get(memory) ?? { held: Promise.resolve() };
    locks.set(memory, lock);
    return createStore(
      overNetwork(openMemory(memory), lock, () => memory.generation, writesAhead),
      options,
    );
  };
}

storeContract(
  'memory',
  opener((memory, options) => createMemoryStore({ memory, ...options })),
);
storeContract('a database over a network', opener(remote(false)));
storeContract('a database over a network, written ahead,', opener(remote(true)));
