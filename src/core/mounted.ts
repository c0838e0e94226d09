/** The agents and tools of this process. Only `remount` and `reconsider` change them; all other code asks each time. */
import type { Actor } from '../model/actions.ts';
import type { AutonomyTier } from '../model/words.ts';
import type { AgentBackend, AgentTerms, Bridge, Logger, ToolBackend } from '../ports/index.ts';
import { mayCall } from './access.ts';
import type { CoreDeps } from './settings.ts';

export interface Remounted {
  readonly backends: readonly AgentBackend[];
  readonly tools: readonly ToolBackend[];
  readonly terms?: ReadonlyMap<string, AgentTerms>;
  /** For work without a persona; unchanged when absent. */
  readonly defaultTier?: AutonomyTier;
}

export interface Mounted {
  readonly backends: ReadonlyMap<string, AgentBackend>;
  tools(): readonly ToolBackend[];
  terms(agent: string): AgentTerms | undefined;
  defaultTier(): AutonomyTier;
  /** Changes with every change of tools, agents or rules. */
  revision(): number;
  /** The agent for work that names none: the default one, or the first one that this actor may call. */
  defaultAgent(actor: Actor): string | undefined;
  /** Why this agent gets no work; undefined while it does. */
  offReason(agent: string): string | undefined;
  /** The agents that this actor may call. */
  describe(actor: Actor): Awaited<ReturnType<Bridge['agents']>>;
  addresses(): ReturnType<Bridge['agentAddresses']>;
  /** The session has ended: no agent needs what it kept for it. */
  release(sessionId: string): void;
  remount(parts: Remounted): void;
  reconsider(): void;
}

export interface MountedDeps extends Pick<CoreDeps, 'backends' | 'tools' | 'terms' | 'switchedOff'> {
  readonly defaultAgent: string | undefined;
  readonly defaultTier: AutonomyTier;
  readonly logger: Logger;
}

export function createMounted(deps: MountedDeps): Mounted {
  const { logger } = deps;
  const backends = new Map(deps.backends.map((backend) => [backend.name, backend]));
  let { tools, terms = NO_TERMS, defaultTier } = deps;
  let revision = 0;

  function defaultAgent(actor: Actor): string | undefined {
    const chosen = deps.defaultAgent ?? backends.keys().next().value;
    if (chosen === undefined || mayCall(actor, chosen)) return chosen;
    return [...backends.keys()].find((name) => mayCall(actor, name));
  }

  return {
    backends,
    tools: () => tools,
    terms: (agent) => terms.get(agent),
    defaultTier: () => defaultTier,
    revision: () => revision,
    defaultAgent,
    offReason: (agent) => terms.get(agent)?.off ?? deps.switchedOff?.(agent),
    describe(actor) {
      const standard = defaultAgent(actor);
      const callable = [...backends.values()].filter(({ name }) => mayCall(actor, name));
      return callable.map((backend) => {
        const { name, abilities, about = NO_DESCRIPTION } = backend;
        const more = terms.get(name)?.about;
        return {
          name,
          default: name === standard,
          abilities,
          about: more ? { ...about, ...more } : about,
          ...(backend.describe && { describe: async () => ({ ...(await backend.describe?.()), ...more }) }),
        };
      });
    },
    async addresses() {
      const found = [...backends.values()].map(async ({ name: agent, addresses }) =>
        ((await addresses?.(false)) ?? []).map((each) => ({ agent, ...each })),
      );
      return (await Promise.all(found)).flat();
    },
    release(sessionId) {
      for (const backend of backends.values()) {
        backend
          .release?.(sessionId)
          .catch((cause) => logger.warn({ err: cause, agent: backend.name }, 'an agent could not let go of a session'));
      }
    },
    remount(parts) {
      backends.clear();
      for (const backend of parts.backends) backends.set(backend.name, backend);
      tools = parts.tools;
      terms = parts.terms ?? terms;
      defaultTier = parts.defaultTier ?? defaultTier;
      revision += 1;
    },
    reconsider() {
      revision += 1;
    },
  };
}

const NO_TERMS: ReadonlyMap<string, AgentTerms> = new Map();

/** One shared object: doors compare an agent's self-description by identity. */
const NO_DESCRIPTION = {};
