/**
 * Agents, tools and harnesses of the configuration, opened once each and kept while their section is unchanged. A part
 * that is removed or changed is closed when the work it has begun is done. Composition, no logic.
 */

import { Fault } from '../../model/faults.ts';
import {
  type AgentBackend,
  type Closable,
  type Deps,
  type Logger,
  type ToolBackend,
  wrapTools,
} from '../../ports/index.ts';
import type { Parts as Mounted } from '../assemble.ts';
import type { Mounts, PartOpening } from './mounts.ts';

type Part = AgentBackend | ToolBackend | Mounted['engines'][number];

interface Open {
  readonly said: string;
  readonly part: Part;
  /** Resolves when no work it began is running. */
  readonly free: () => Promise<void>;
}

interface Parts extends Closable {
  /** Returns the parts to mount; throws, and changes nothing, when a section cannot be opened. */
  take(mounts: Mounts, more: Pick<Mounted, 'backends' | 'tools'>): Taken;
}
export interface Taken extends Mounted {
  /** Paths whose section differs from before: `agents.far`. */
  readonly changed: readonly string[];
  /** Closes the parts that are no longer mounted. To be called after they were unmounted. */
  settle(): void;
}

export function createParts(deps: Deps): Parts {
  let open: ReadonlyMap<string, Open> = new Map();
  let terms: Mounts['terms'] = new Map();

  function part<T extends Part>(opening: PartOpening<T>, next: Map<string, Open>, track: (part: T) => Tracked<T>): T {
    const before = open.get(opening.at);
    const now = before?.said === opening.said ? before : { said: opening.said, ...track(opening.open(deps)) };
    next.set(opening.at, now);
    return now.part as T;
  }

  return {
    take(mounts, more) {
      const next = new Map<string, Open>();
      try {
        const backends = mounts.agents.map((opening) => part(opening, next, trackedAgent));
        const tools = mounts.tools.map((opening) => part(opening, next, trackedTools));
        const engines = mounts.harnesses.map((opening) => part(opening, next, untracked));
        const taken = {
          backends: distinct('agents', [...backends, ...more.backends]),
          tools: distinct('tools', [...tools, ...more.tools]),
          engines,
          terms: mounts.terms,
        };
        const before = open;
        const dropped = [...before].filter(([at, { part }]) => next.get(at)?.part !== part);
        const changed = new Set([
          ...dropped.map(([at]) => at),
          ...[...next.keys()].filter((at) => !before.has(at)),
          ...otherTerms(terms, mounts.terms).map((name) => `agents.${name}`),
        ]);
        open = next;
        terms = mounts.terms;
        return {
          ...taken,
          changed: [...changed].sort(),
          settle: () => {
            for (const [at, one] of dropped) letGo(at, one, deps.log);
          },
        };
      } catch (thrown) {
        for (const [at, one] of next) if (open.get(at) !== one) letGo(at, one, deps.log);
        throw thrown;
      }
    },
    async close() {
      await Promise.all([...open].map(([at, one]) => end(at, one, deps.log)));
    },
  };
}

/** Agents about which the configuration says something else than before. They go on with the work they have. */
function otherTerms(before: Mounts['terms'], now: Mounts['terms']): readonly string[] {
  const names = new Set([...before.keys(), ...now.keys()]);
  return [...names].filter((name) => JSON.stringify(before.get(name)) !== JSON.stringify(now.get(name)));
}

function letGo(at: string, one: Open, log: Logger): void {
  one.free().then(() => end(at, one, log));
}

async function end(at: string, { part }: Open, log: Logger): Promise<void> {
  await part.close?.().catch((cause) => log.error({ err: cause, part: at }, 'a part of the gateway did not close'));
}

interface Tracked<T> {
  readonly part: T;
  readonly free: () => Promise<void>;
}

const untracked = <T extends Part>(part: T): Tracked<T> => ({ part, free: async () => {} });

function trackedAgent(agent: AgentBackend): Tracked<AgentBackend> {
  const { watch, free } = counter();
  const start: AgentBackend['start'] = async (work, sink, signal) => {
    const run = await watch(agent.start(work, sink, signal));
    watch(run.done).catch(() => {});
    return run;
  };
  return { part: { ...agent, start }, free };
}

function trackedTools(tools: ToolBackend): Tracked<ToolBackend> {
  const { watch, free } = counter();
  const part = wrapTools(tools, (one) => ({ ...one, call: (...args) => watch(one.call(...args)) }));
  return { part, free };
}

function counter() {
  let busy = 0;
  let waiting: (() => void)[] = [];
  return {
    async watch<T>(work: Promise<T>): Promise<T> {
      busy += 1;
      try {
        return await work;
      } finally {
        busy -= 1;
        if (busy === 0) for (const wake of waiting.splice(0)) wake();
      }
    },
    async free(): Promise<void> {
      if (busy > 0) await new Promise<void>((resolve) => (waiting = [...waiting, resolve]));
    },
  };
}

/** Work and calls are addressed by name. */
function distinct<T extends { readonly name: string }>(kind: string, parts: readonly T[]): readonly T[] {
  const twice = parts.find(({ name }, index) => parts.findIndex((other) => other.name === name) !== index);
  if (twice)
    throw new Fault(
      'invalid_request',
      `${kind}: two are called ${twice.name}; the built-in ones can be left out with "demo: false"`,
    );
  return parts;
}
