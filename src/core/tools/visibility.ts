/**
 * Which tools an actor may try: those the rules do not refuse whatever the arguments. Asking writes nothing, unless a tool is found
 * to have changed since it was first shown.
 */
import type { ActFacts } from '../../model/act-facts.ts';
import type { Action } from '../../model/actions.ts';
import type { Skill } from '../../model/resources.ts';
import type { Ids } from '../../ports/index.ts';
import type { Gate } from '../actions/gate.ts';
import type { EffectOfTool } from './accepted.ts';
import type { Tools } from './catalog.ts';

export interface VisibilityDeps {
  readonly tools: Tools;
  readonly gate: Gate;
  readonly ids: Ids;
  readonly effectOf: EffectOfTool;
}

type About = Pick<Action, 'actor' | 'workspace_id' | 'persona' | 'tier' | 'quotas' | 'root'>;

export async function visibleTools(deps: VisibilityDeps, about: About): Promise<readonly Skill[]> {
  const all = await deps.tools.list();
  const verdicts = await Promise.all(
    all.map(({ name, source }) => isToolVisible(deps, about, name, source ?? undefined)),
  );
  return all.filter((_, at) => verdicts[at]);
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

/** One tool, without evaluating the others. */
export async function isToolVisible(
  { tools, gate, ids, effectOf }: VisibilityDeps,
  about: About,
  tool: string,
  server: string | undefined,
): Promise<boolean> {
  // Only a server whose list is not known is asked: one that is slow must not hold up the tools of the others.
  const listed = server === undefined ? undefined : tools.known(tool, server);
  const found = listed ?? (await tools.find(tool, server).catch(() => undefined));
  if (!found) return false;
  const attributes = found.attributes('');
  const { verdict } = await gate({
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
  });
  return verdict !== 'block';
}
