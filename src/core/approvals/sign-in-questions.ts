/**
 * A call of an agent to a server at which its principal has to sign in first. The task waits in AUTH_REQUIRED with a question that holds
 * the link, and that only this principal may answer: with the code that the page of the sign-in shows.
 */
import type { Decision } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import type { Task } from '../../model/resources.ts';
import type { RuleOptions } from '../actions/authorization.ts';
import type { AuthorizerDeps } from '../actions/authorize.ts';
import { SIGN_IN_KEY } from '../tasks/lifecycle.ts';
import { createInputQuestions } from './input-questions.ts';

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

export function createSignInQuestions(deps: Pick<AuthorizerDeps, 'log' | 'asks'>): AskForCode {
  const askForInput = createInputQuestions(deps);
  return async (task, { actor, signal, withdrawn }, { server, question }) => {
    const decision: Decision = {
      verdict: 'escalate',
      reason: 'sign_in_required',
      engine: 'bridge',
      ask: { to: [actor.on_behalf_of ?? actor.id] },
    };
    const asked = { key: `${SIGN_IN_KEY}${server}`, question, decision };
    const answer = await askForInput(task, asked, { actor, signal, withdrawn });
    return answer.kind === 'value' && typeof answer.value === 'string' ? answer.value : undefined;
  };
}
