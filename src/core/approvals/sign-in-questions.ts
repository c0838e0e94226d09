/**
 * A call of an agent to a server at which its principal has to sign in first. The task waits in AUTH_REQUIRED with a question that holds
 * the link, and that only this principal may answer: with the code that the page of the sign-in shows.
 */
import { Fault } from '../../model/faults.ts';
import type { Task } from '../../model/resources.ts';
import { isTerminal } from '../../model/words.ts';
import type { Row } from '../../ports/index.ts';
import type { AuthorizerDeps, RuleOptions } from '../actions/authorize.ts';
import type { Run } from '../events/rows.ts';
import { openRun, readsOf, SIGN_IN_KEY } from '../tasks/lifecycle.ts';

/** The tool with which a sign-in is completed, and its server. */
export interface SignInNeeded {
  readonly server: string;
  readonly tool: string;
  readonly question: string;
}

/** Undefined for every other fault. */
export function signInNeeded(thrown: unknown): SignInNeeded | undefined {
  if (!(thrown instanceof Fault) || thrown.details?.code !== 'sign_in_required') return undefined;
  const { server, tool } = thrown.details;
  if (typeof server !== 'string' || typeof tool !== 'string') return undefined;
  return { server, tool, question: thrown.message };
}

/** The code; undefined when the principal gave none. */
export type AskForCode = (task: Task, options: RuleOptions, needed: SignInNeeded) => Promise<string | undefined>;

export function createSignInQuestions({ log, asks }: Pick<AuthorizerDeps, 'log' | 'asks'>): AskForCode {
  return async (task, { actor, signal, withdrawn }, { server, question }) => {
    const key = `${SIGN_IN_KEY}${server}`;
    const digest = asks.digest({ actor, kind: 'elicit', tool: key, arguments: { question } });
    const to = { to: [actor.on_behalf_of ?? actor.id] };
    let askId = '';
    await log.commit({
      reads: readsOf(task.id),
      decide(at) {
        const { now, run } = openRun(at, task.id);
        const raised = asks.raise(at, now, run, {
          kind: 'input',
          key,
          digest,
          question,
          action: { kind: 'elicit', actor: actor.id },
          name: 'input',
          decision: { verdict: 'escalate', reason: 'sign_in_required', engine: 'bridge', ask: to },
        });
        askId = raised.ask_id;
        return { events: raised.events };
      },
    });
    const answer = await asks.wait(askId, task.id, signal, { id: actor.id, withdrawn });
    await log.commit({
      reads: readsOf(task.id),
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const run = at.get<Run>('run', task.id);
        // Calls that wait for one sign-in share its question; the first spends the answer.
        const answered = run?.asks.some((ask) => ask.id === askId && ask.state !== 'open');
        return { events: now && answered && !isTerminal(now.status) ? [asks.take(at, now, run, askId)] : [] };
      },
    });
    return answer.kind === 'value' && typeof answer.value === 'string' ? answer.value : undefined;
  };
}
