/** Which tools an actor may try: those the rules do not refuse outright, whatever the arguments. Asks, and writes nothing. */
import type { Action } from '../model/actions.ts';
import type { Skill } from '../model/resources.ts';
import type { Ids } from '../ports.ts';
import type { Gate } from './gate.ts';
import type { Tools } from './tools.ts';

export interface OfferDeps {
  readonly tools: Tools;
  readonly gate: Gate;
  readonly ids: Ids;
}

export async function offeredTools(
  { tools, gate, ids }: OfferDeps,
  about: Pick<Action, 'actor' | 'workspace_id' | 'persona' | 'tier' | 'quotas'>,
): Promise<readonly Skill[]> {
  const all = await tools.list();
  const verdicts = await Promise.all(
    all.map(async ({ name, source }) => {
      const found = await tools.find(name, source ?? undefined).catch(() => undefined);
      if (!found) return false;
      const attributes = found.attributes('');
      const { verdict } = await gate({
        ...about,
        id: ids.next('action'),
        kind: 'tool',
        tool: name,
        server: found.server,
        definition: found.definition,
        arguments: {},
        effect: found.effect,
        evidence: 'held',
        ...(attributes && { attributes }),
      });
      return verdict !== 'block';
    }),
  );
  return all.filter((_, at) => verdicts[at]);
}
