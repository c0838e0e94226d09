/** Acts that core can run although no mounted tool has them: requests for a server that pass through it, and memories. */
import type { ProposedAction } from '../../../model/commands.ts';
import type { Task } from '../../../model/resources.ts';
import type { HeldEffect } from '../../../ports/index.ts';
import type { ActsDeps } from '../acts.ts';
import type { RuleOptions } from '../authorization.ts';

export type EffectOfAct = (
  task: Task,
  proposed: ProposedAction,
  options: RuleOptions,
  callId: string,
) => HeldEffect | undefined;

/** Undefined for an act that needs a mounted tool. */
export function createUnmountedActs({ tools, remember }: Pick<ActsDeps, 'tools' | 'remember'>): EffectOfAct {
  /** A request in its server's protocol that no mapping table covers: forwarded as it was decided on. */
  function passing(
    { kind, tool: method, server }: ProposedAction,
    { actor, context }: RuleOptions,
  ): HeldEffect | undefined {
    if (kind !== 'extension' || !method || !server) return undefined;
    tools.requirePassing(server);
    return async (params, signal) => {
      const output = await tools.pass(actor, server, { method, params }, signal, context);
      const taint = tools.taints(server, { method, params }) && { taint: { server, what: method } };
      if (!Object.hasOwn(output, 'error')) return { status: 'ok', output, ...taint };
      return { status: 'error', output, error: `${server} answered ${method} with an error`, ...taint };
    };
  }

  /** Memories that work writes are stored here: gated and recorded like any other act. */
  function remembering(
    task: Task,
    { kind, server }: ProposedAction,
    { actor }: RuleOptions,
    callId: string,
  ): HeldEffect | undefined {
    if (kind !== 'memory.write' || server || !remember) return undefined;
    return async (args) => ({ status: 'ok', output: { memory_id: await remember(task, actor, args, callId) } });
  }

  return (task, proposed, options, callId) =>
    passing(proposed, options) ?? remembering(task, proposed, options, callId);
}
