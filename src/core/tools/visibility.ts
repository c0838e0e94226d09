/**
 * Which tools an actor may try: those the rules do not refuse whatever the arguments. Asking writes nothing, unless a tool is found
 * to have changed since it was first shown.
 */
import type { ActFacts } from '../../model/act-facts.ts';
import type { Action } from '../../model/actions.ts';
import type { Skill } from '../../model/resources.ts';
import type { Bridge, Ids } from '../../ports/index.ts';
import { type Access, requireReadScope } from '../access.ts';
import type { Gate } from '../actions/gate.ts';
import type { ReadPolicyData } from '../actions/policy-data.ts';
import type { EffectOfTool } from './accepted.ts';
import type { Tools } from './catalog.ts';

export interface VisibilityDeps {
  readonly tools: Tools;
  readonly gate: Gate;
  readonly ids: Ids;
  readonly effectOf: EffectOfTool;
  readonly access: Pick<Access, 'workspaceVisible'>;
  readonly policyData: ReadPolicyData;
}

const NO_ARGUMENTS = {};
/** No arguments are known yet: a rule about paths or commands may match or not. */
const NOT_YET: ActFacts = {
  of: NO_ARGUMENTS,
  commands: [],
  paths: [],
  urls: [],
  contents: [],
  hints: { command: [], path: [], url: [] },
  undetermined: new Set(),
  bases: [],
  shows: undefined,
  open: true,
};

type About = Pick<Action, 'actor' | 'workspace_id' | 'persona' | 'tier' | 'quotas' | 'root'>;

export function createVisibleTools(deps: VisibilityDeps): Bridge['visible'] {
  const { tools, gate, ids, effectOf, access, policyData } = deps;

  async function mayTry(about: About, { name: tool, source }: Skill): Promise<boolean> {
    // Only a server whose list is not known is asked: one that is slow must not hold up the tools of the others.
    const listed = source ? tools.lastListed(about.actor, tool, source) : undefined;
    const found = listed ?? (await tools.find(about.actor, tool, source ?? undefined).catch(() => undefined));
    if (!found) return false;
    const attributes = found.attributes('');
    const action: Action = {
      id: ids.next('action'),
      kind: 'tool',
      tool,
      server: found.server,
      definition: found.definition,
      arguments: NO_ARGUMENTS,
      facts: NOT_YET,
      effect: await effectOf(found),
      evidence: 'held',
      ...about,
      ...(attributes && { attributes }),
    };
    return (await gate(action, undefined, found)).verdict !== 'block';
  }

  return async (actor, workspaceId, one) => {
    requireReadScope(actor, 'skill');
    if (!(await access.workspaceVisible(actor, workspaceId))) return [];
    const data = await policyData({ workspace_id: workspaceId, persona_id: null, quota_id: null });
    const about = { actor, workspace_id: workspaceId, ...data };
    const all = one ? [one] : await tools.list(actor);
    const verdicts = await Promise.all(all.map((skill) => mayTry(about, skill)));
    return all.filter((_, at) => verdicts[at]);
  };
}
