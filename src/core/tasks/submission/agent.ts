/** Which agent does new work: one that is mounted here and open to the caller, one behind another process, or none of ours. */
import type { Actor } from '../../../model/actions.ts';
import { Fault } from '../../../model/faults.ts';
import type { Persona } from '../../../model/resources.ts';
import type { AgentBackend } from '../../../ports/index.ts';
import { mayCall } from '../../access.ts';
import type { Served } from '../../commands/session-opening.ts';

export interface AgentChoiceDeps {
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly defaultAgent: (actor: Actor) => string | undefined;
  readonly isDead: (instance: string) => Promise<boolean>;
}

export function createAgentChoice({ backends, defaultAgent, isDead }: AgentChoiceDeps) {
  /** An agent that this actor may not call is as absent as one that is not mounted. */
  function agentFor(actor: Actor, wanted: string | undefined, persona?: Persona, served?: Served): string {
    const ofPersona = persona && backends.has(persona.entry_workflow) ? persona.entry_workflow : undefined;
    const named = wanted ?? ofPersona ?? served?.agent ?? defaultAgent(actor);
    if (!named) throw new Fault('invalid_request', 'no agent is mounted, and the task names none', { param: '/agent' });
    if (named !== 'none' && !mayCall(actor, named)) throw absent(named);
    return named;
  }

  /** An agent behind a relay is mounted in its process only, which finds the task in the session and takes it up. */
  async function processOf(agent: string, served: Served | undefined): Promise<string> {
    if (served?.agent !== agent || (await isDead(served.instance))) throw absent(agent);
    return served.instance;
  }

  return { agentFor, processOf };
}

/** A session's tier below act_auto cannot be enforced on an agent that acts by itself and only reports. */
export function requireHeld(most: string | undefined, backend: AgentBackend | undefined): void {
  if (!backend || most === undefined || most === 'act_auto' || most === 'act_with_approval') return;
  if (backend.abilities.evidence !== 'observed') return;
  const why = `agent ${backend.name} acts by itself and reports what it did, so its session cannot be limited to ${most}`;
  throw new Fault('policy_violation', why, { details: { agent: backend.name, autonomy_tier: most } });
}

function absent(agent: string): Fault {
  return new Fault('invalid_request', `no agent ${agent} is mounted`, { param: '/agent' });
}
