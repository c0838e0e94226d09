/**
 * `tollbridge approve ID --for session`, or for a time: the same tool of the same server, for the same caller, is then not asked
 * about again. It is a remembered answer: it replaces a question and nothing else, so an act that a rule blocks stays blocked.
 */
import type { AskRecord } from '../../../model/asks.ts';
import { Fault } from '../../../model/faults.ts';
import { durationMs } from '../../../policy/rules/duration.ts';
import type { Row, RuleDraft, Store } from '../../../ports/index.ts';

export async function grantFor(
  ask: AskRecord,
  wanted: string,
  { by, now, store }: { readonly by: string; readonly now: string; readonly store: Pick<Store, 'get'> },
): Promise<RuleDraft> {
  const { tool, server, actor } = ask.action as { tool?: string; server?: string; actor?: string };
  const ms = wanted === 'session' ? undefined : durationMs(wanted);
  if (wanted !== 'session' && ms === undefined)
    throw new Fault('invalid_request', `--for takes "session" or a time such as 30m, 2h or 1d, and not ${wanted}`);
  if (ask.kind !== 'approval' || !tool || !actor)
    throw new Fault('invalid_request', 'only the use of a tool can be approved for longer than once');
  // Given in a session that has read untrusted content, it covers such sessions; given before that, it does not.
  const tainted = (await store.get<Row>('taint', ask.session_id)) !== undefined;
  const until = ms === undefined ? null : new Date(Date.parse(now) + ms).toISOString();
  return {
    ...(ms === undefined
      ? { scope: 'session', scope_value: ask.session_id }
      : { scope: 'user', scope_value: actor, expires_at: until }),
    class: 'custom',
    action_pattern: tool,
    target_pattern: '*',
    ...(server && { server }),
    ...(tainted && { tainted }),
    allow: true,
    reason: `approved for ${wanted === 'session' ? 'the session' : wanted} with ${ask.id}`,
    created_by: by,
    own: true,
    workspace_id: ask.workspace_id,
  };
}
