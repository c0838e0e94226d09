/**
 * An approval for longer than once, for the session or for a time: the same tool of the same server, as it was defined then, is not
 * asked about again for the same caller and the same principal. It is a remembered answer: it replaces a question and nothing else, so an act that a rule blocks stays blocked.
 */
import type { Action, Actor } from '../../model/actions.ts';
import { type AskRecord, coveredAct } from '../../model/asks.ts';
import { Fault } from '../../model/faults.ts';
import type { Task, Workspace } from '../../model/resources.ts';
import { durationMs } from '../../model/values/duration.ts';
import type { Row, RuleDraft, Store } from '../../ports/index.ts';

/** Whether an approval of this question can be given for longer than once. */
export function isGrantable(ask: AskRecord): boolean {
  const { kind, tool, actor } = askedAct(ask);
  // The name is used as a pattern, and one with an asterisk would stand for other tools too.
  return ask.kind === 'approval' && kind !== 'prompt' && Boolean(tool && actor) && !tool?.includes('*');
}

/** `wanted`: the word `session`, or a time such as `2h`. */
export async function grantFor(
  ask: AskRecord,
  wanted: string,
  { actor: by, now, store }: { readonly actor: Actor; readonly now: string; readonly store: Pick<Store, 'get'> },
): Promise<RuleDraft> {
  const act = askedAct(ask);
  const { tool = '', server, actor = '' } = act;
  const ms = wanted === 'session' ? undefined : durationMs(wanted);
  if (wanted !== 'session' && ms === undefined)
    throw new Fault('invalid_request', `for takes "session" or a time such as 30m, 2h or 1d, and not ${wanted}`);
  if (!isGrantable(ask))
    throw new Fault('invalid_request', 'only the use of a tool can be approved for longer than once');
  // Given in a session that has read untrusted content, it covers such sessions; given before that, it does not.
  const tainted = (await store.get<Row>('taint', ask.session_id)) !== undefined;
  const task = await store.get<Task & Row>('task', ask.task_id);
  // Of the work, not of its approver: an id without its tenant would be another caller.
  const workspace = await store.get<Workspace & Row>('workspace', ask.workspace_id);
  const until = ms === undefined ? null : new Date(Date.parse(now) + ms).toISOString();
  return {
    ...(ms === undefined
      ? { scope: 'session', scope_value: ask.session_id }
      : { scope: 'user', scope_value: actor, expires_at: until }),
    class: 'custom',
    action_pattern: tool,
    target_pattern: '*',
    ...(server && { server }),
    covers: coveredAct(act as Pick<Action, 'kind'>, actor, task),
    ...(tainted && { tainted }),
    allow: true,
    reason: `approved for ${wanted === 'session' ? 'the session' : wanted} with ${ask.id}`,
    created_by: by.id,
    own: true,
    ...(by.kind === 'person' && by.interactive && { interactive: true }),
    workspace_id: ask.workspace_id,
    ...(workspace?.tenant_id && { tenant_id: workspace.tenant_id }),
  };
}

interface AskedAct {
  readonly kind?: string;
  readonly tool?: string;
  readonly server?: string;
  readonly definition?: string;
  readonly actor?: string;
}

function askedAct({ action }: AskRecord): AskedAct {
  return action;
}
